package counter

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/model"
)

// A Value is data that processes share, with a version. Its methods may be called concurrently.
type Value[T any] struct { // immutable
	register register
	codec    model.Codec[T]
}

// NewValue returns the value at path, and sends nothing yet. If arguments are faulty, NewValue
// returns all faults.
func NewValue[T any](c *framework.Client, path string, codec model.Codec[T], opts ...Option) (*Value[T], error) {
	cfg, err := newConfig(c, path, opts)
	if cfg.int32 {
		err = errors.Join(err, errors.New("WithInt32: must not be given for a value"))
	}
	err = errors.Join(err, args.Codec(codec.Encode != nil, codec.Decode != nil))
	if err != nil {
		return nil, recipe.Error(c, "new value", path, err)
	}
	return &Value[T]{register{client: c, path: path, acl: cfg.ACL}, codec}, nil
}

// Get returns the value. It shows what the client's server knows, which may lag behind the ensemble.
// Errors: [framework.ErrNoNode] if there is no znode, that of Decode, and the client's.
func (v *Value[T]) Get(ctx context.Context) (value T, err error) {
	at, err := v.register.read(ctx)
	if err == nil && !at.exists {
		err = framework.ErrNoNode
	}
	if err == nil {
		value, err = v.codec.Decode(at.data)
	}
	return value, recipe.CallError(ctx, v.register.client, "get", v.register.path, err)
}

// Update replaces the value by the one that fn makes of it, and returns that. exists is false, and
// old the zero value, if there is no znode. If another client came in between, Update reads again
// and calls fn again. The update is applied once; if that is not known, the error wraps
// [framework.ErrUnknownOutcome]. An error of fn, Decode or Encode ends Update and nothing is
// written. If ctx ends first, the error wraps ctx's. Other errors: [ErrVersion] and the client's.
func (v *Value[T]) Update(
	ctx context.Context, fn func(old T, exists bool) (T, error),
) (value T, err error) {
	if err = args.Function("fn", fn != nil); err == nil {
		value, err = v.update(ctx, fn)
	}
	return value, recipe.CallError(ctx, v.register.client, "update", v.register.path, err)
}

func (v *Value[T]) update(ctx context.Context, fn func(old T, exists bool) (T, error)) (value T, err error) {
	err = v.register.update(ctx, func(at state) ([]byte, error) {
		var old T
		if at.exists {
			if old, err = v.codec.Decode(at.data); err != nil {
				return nil, fmt.Errorf("decode: %w", err)
			}
		}
		if value, err = fn(old, at.exists); err != nil {
			return nil, err
		}
		data, err := v.codec.Encode(value)
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		return data, nil
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return value, nil
}

// Set replaces the value, whatever it is. Errors are those of [Value.Update].
func (v *Value[T]) Set(ctx context.Context, value T) error {
	data, err := v.codec.Encode(value)
	if err == nil {
		err = v.register.update(ctx, func(state) ([]byte, error) { return data, nil })
	}
	return recipe.CallError(ctx, v.register.client, "set", v.register.path, err)
}

// All returns the value, now and whenever it changes, the latest alone. With it, or in its place, it
// returns an error of Decode, or [framework.ErrNoNode] while there is no znode. An outage ends
// nothing: the latest value follows. An error that no retry can fix, such as [framework.ErrNoAuth], is
// returned once; All tries again every five seconds, and goes on when the value can be read. The
// sequence ends with ctx, with the client, or when the loop is left.
func (v *Value[T]) All(ctx context.Context) iter.Seq2[T, error] {
	usercall.Require("ctx", ctx != nil)
	return func(yield func(T, error) bool) {
		for at, err := range v.register.all(ctx) {
			if !yield(v.shown(at, err)) {
				return
			}
		}
	}
}

// shown returns the value of a state, or the error of reading it.
func (v *Value[T]) shown(at state, err error) (value T, _ error) {
	if err == nil && !at.exists {
		err = framework.ErrNoNode
	}
	if err != nil {
		return value, recipe.Error(v.register.client, "watch", v.register.path, err)
	}
	value, err = v.codec.Decode(at.data)
	return value, recipe.Error(v.register.client, "decode", v.register.path, err)
}

// Path returns the value's path.
func (v *Value[T]) Path() string { return v.register.path }
