package counter

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A Value is data that processes share, with a version. Its methods may be called concurrently.
type Value[T any] struct { // immutable
	cell  cell
	codec Codec[T]
}

// NewValue returns the value at path, and sends nothing yet. If arguments are faulty, NewValue
// returns all faults.
func NewValue[T any](c *framework.Client, path string, codec Codec[T], opts ...Option) (*Value[T], error) {
	cfg, err := newConfig(c, path, opts)
	if cfg.int32 {
		err = errors.Join(err, errors.New("WithInt32: must not be given for a value"))
	}
	if codec.Encode == nil || codec.Decode == nil {
		err = errors.Join(err, errors.New("codec: must have Encode and Decode"))
	}
	if err != nil {
		return nil, opError("new value", path, err)
	}
	return &Value[T]{cell{c, path, cfg.acl}, codec}, nil
}

// Get returns the value. It shows what the client's server knows, which may lag behind the ensemble.
// Errors: [framework.ErrNoNode] if there is no znode, that of Decode, and the client's.
func (v *Value[T]) Get(ctx context.Context) (value T, err error) {
	at, err := v.cell.read(cause.Inside(ctx))
	if err == nil && !at.exists {
		err = framework.ErrNoNode
	}
	if err == nil {
		value, err = v.codec.Decode(at.data)
	}
	return value, callError(ctx, "get", v.cell.path, err)
}

// Update replaces the value by the one that fn makes of it, and returns that. exists is false, and
// old the zero value, if there is no znode. If another client came in between, Update reads again
// and calls fn again. The update is applied once; if that is not known, the error wraps
// [framework.ErrUnknownOutcome]. An error of fn, Decode or Encode ends Update and nothing is
// written. If ctx ends first, the error wraps ctx's. Other errors: [ErrVersion] and the client's.
func (v *Value[T]) Update(
	ctx context.Context, fn func(old T, exists bool) (T, error),
) (value T, err error) {
	value, err = v.update(cause.Inside(ctx), fn)
	return value, callError(ctx, "update", v.cell.path, err)
}

func (v *Value[T]) update(ctx context.Context, fn func(old T, exists bool) (T, error)) (value T, err error) {
	var zero T
	for {
		at, err := v.cell.read(ctx)
		if err != nil {
			return zero, err
		}
		var old T
		if at.exists {
			if old, err = v.codec.Decode(at.data); err != nil {
				return zero, fmt.Errorf("decode: %w", err)
			}
		}
		if value, err = fn(old, at.exists); err != nil {
			return zero, err
		}
		data, err := v.codec.Encode(value)
		if err != nil {
			return zero, fmt.Errorf("encode: %w", err)
		}
		_, err = v.cell.replace(ctx, at, data)
		switch {
		case err == nil:
			return value, nil
		case err != errStale: //nolint:errorlint // it is never wrapped
			return zero, err
		}
	}
}

// Set replaces the value, whatever it is. Errors are those of [Value.Update].
func (v *Value[T]) Set(ctx context.Context, value T) error {
	data, err := v.codec.Encode(value)
	for err == nil {
		var at state
		if at, err = v.cell.read(cause.Inside(ctx)); err != nil {
			break
		}
		if _, err = v.cell.replace(cause.Inside(ctx), at, data); err == nil {
			return nil
		}
		if err == errStale { //nolint:errorlint // it is never wrapped
			err = nil
		}
	}
	return callError(ctx, "set", v.cell.path, err)
}

// All returns the value, now and whenever it changes, the latest alone. With it, or in its place, it
// returns an error of Decode, or [framework.ErrNoNode] while there is no znode. An outage ends
// nothing: the latest value follows. The sequence ends with ctx, with the client, when the loop is
// left, or after an error that no retry can fix, such as [framework.ErrNoAuth].
func (v *Value[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		shown := int64(-1) // mzxid of what was shown, 0 for no znode
		for {
			w, err := v.watch(cause.Inside(ctx))
			switch {
			case ctx.Err() != nil || errors.Is(err, framework.ErrClosed):
				return
			case framework.Retryable(err) || errors.Is(err, framework.ErrReadOnly):
				if v.cell.client.AwaitConnected(cause.Inside(ctx)) != nil {
					return
				}
				continue
			case err != nil:
				var zero T
				yield(zero, opError("watch", v.cell.path, err))
				return
			}
			if st, _ := w.Stat(); st.Mzxid != shown {
				shown = st.Mzxid
				if !yield(v.shown(w)) {
					w.Close()
					return
				}
			}
			await(ctx, v.cell.client, w)
			w.Close()
		}
	}
}

// watch watches the znode, or its creation.
func (v *Value[T]) watch(ctx context.Context) (*framework.Watch, error) {
	for {
		w, err := v.cell.client.Watch(ctx, v.cell.path, framework.WatchData)
		if !errors.Is(err, framework.ErrNoNode) {
			return w, err
		}
		w, err = v.cell.client.Watch(ctx, v.cell.path, framework.WatchExists)
		if err != nil {
			return nil, err
		}
		if _, exists := w.Stat(); !exists {
			return w, nil
		}
		w.Close()
	}
}

// shown returns what a watch has read.
func (v *Value[T]) shown(w *framework.Watch) (value T, err error) {
	if _, exists := w.Stat(); !exists {
		return value, opError("watch", v.cell.path, framework.ErrNoNode)
	}
	value, err = v.codec.Decode(w.Data())
	return value, opError("decode", v.cell.path, err)
}

// await returns when the watch has fired or may have missed an event, or when ctx has ended.
func await(ctx context.Context, c *framework.Client, w *framework.Watch) {
	recheck := time.NewTimer(waitqueue.RecheckDelay(c))
	defer recheck.Stop()
	select {
	case <-w.Fired():
	case <-recheck.C:
	case <-ctx.Done():
	}
}

// Path returns the value's path.
func (v *Value[T]) Path() string { return v.cell.path }
