package node

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/model"
)

// A Value is a [Node] whose data is a value of type T. Its methods may be called concurrently.
type Value[T any] struct {
	*Node
	encode func(T) ([]byte, error)
}

// NewValue is [New] with a value in the place of the data. If the codec can't encode it, NewValue returns
// that error and sends nothing.
func NewValue[T any](c *framework.Client, path string, value T, codec model.Codec[T], opts ...Option) (*Value[T], error) {
	if err := args.Codec(codec.Encode != nil, codec.Decode != nil); err != nil {
		_, others := newConfig(c, path, nil, opts)
		return nil, recipe.Error(c, "new value", path, errors.Join(others, err))
	}
	data, err := codec.Encode(value)
	if err != nil {
		return nil, recipe.Error(c, "encode", path, err)
	}
	n, err := New(c, path, data, opts...)
	if err != nil {
		return nil, err
	}
	return &Value[T]{n, codec.Encode}, nil
}

// Set is [Node.Set] with a value in the place of the data. If the codec can't encode it, Set changes
// nothing and returns that error.
func (v *Value[T]) Set(ctx context.Context, value T) error {
	usercall.Require("ctx", ctx != nil)
	written, err := v.Replace(value)
	if err != nil {
		return err
	}
	return written(ctx)
}

// Replace is [Node.Replace] with a value in the place of the data. If the codec can't encode it, Replace
// changes nothing and returns that error.
func (v *Value[T]) Replace(value T) (written func(context.Context) error, err error) {
	data, err := v.encode(value)
	if err != nil {
		return nil, recipe.Error(v.client, "encode", v.path, err)
	}
	return v.Node.Replace(data)
}
