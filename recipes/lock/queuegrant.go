package lock

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A queueGrant is the grant of a lock whose contenders queue: the first znode of the queue.
type queueGrant struct {
	*waitqueue.Grant
	path string // of the lock
}

// Release deletes the znode.
func (g *queueGrant) Release(ctx context.Context) error {
	err := g.Client.Delete(ctx, g.Path, framework.Guaranteed())
	return g.released(err)
}

// released ends the grant, whose znode was deleted with err.
func (g *queueGrant) released(err error) error {
	g.Session.Release()
	return opError("release", g.path, deletionError(g.path, err))
}

// Discard has the znode deleted.
func (g *queueGrant) Discard() {
	g.Client.Discard(g.Path)
	g.Session.Release()
}

// deletionError returns what the end of a deletion means for the release of the lock at path.
func deletionError(path string, err error) error {
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return &LostError{Path: path, Cause: ErrNodeDeleted}
	case errors.Is(err, framework.ErrSessionEnded), errors.Is(err, framework.ErrClosed):
		return &LostError{Path: path, Cause: err}
	}
	return err
}
