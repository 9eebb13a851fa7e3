package contender

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// A Grant is the grant of a recipe whose contenders queue: the first znode of the queue.
type Grant struct {
	*waitqueue.Grant
	Of      string                                 // path of the recipe
	OpError func(op, path string, err error) error // wraps the error of the release; nil stays nil
}

// Release deletes the znode.
func (g *Grant) Release(ctx context.Context) error {
	return g.Released(g.Client.Delete(ctx, g.Path, framework.Guaranteed()))
}

// Released ends the grant. err is the result of the znode's deletion.
func (g *Grant) Released(err error) error {
	g.Session.Release()
	return g.OpError("release", g.Of, DeletionError(g.Of, err))
}

// Discard deletes the znode in the background.
func (g *Grant) Discard() {
	g.Client.Discard(g.Path)
	g.Session.Release()
}

// DeletionError returns the release's error for the result of the deletion. If the znode is gone and a
// reply was lost, the release itself deleted it.
func DeletionError(path string, err error) error {
	switch {
	case errors.Is(err, framework.ErrNoNode) && errors.Is(err, framework.ErrUnknownOutcome):
		return nil
	case errors.Is(err, framework.ErrNoNode):
		return &lease.LostError{Path: path, Cause: lease.ErrNodeDeleted}
	case errors.Is(err, framework.ErrSessionEnded), errors.Is(err, framework.ErrClosed):
		return &lease.LostError{Path: path, Cause: err}
	}
	return err
}
