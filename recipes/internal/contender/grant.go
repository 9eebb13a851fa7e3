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
	return g.OpError("release", g.Of, ReleaseError(g.Of, g.Session, err))
}

// Discard deletes the znode in the background.
func (g *Grant) Discard() {
	g.Client.Discard(g.Path)
	g.Session.Release()
}

// ReleaseError ends the session's hold and returns the error of a release whose deletion returned
// err. If the session ended meanwhile by the client's clock, or with the client, the lease was valid
// when the release began and the znode ends with the session: that is no error. But if the znode or
// the session was gone at the ensemble, another client may have held the lock before the release. If
// the znode is gone and a reply was lost, the release itself deleted it.
func ReleaseError(path string, session *framework.SessionHold, err error) error {
	defer session.Release()
	switch {
	case errors.Is(err, framework.ErrNoNode) && errors.Is(err, framework.ErrUnknownOutcome):
		return nil
	case errors.Is(err, framework.ErrNoNode):
		return &lease.LostError{Path: path, Cause: lease.ErrNodeDeleted}
	case errors.Is(err, framework.ErrSessionEnded), errors.Is(err, framework.ErrClosed):
		if ended := session.Err(); errors.Is(ended, framework.ErrSessionExpired) || errors.Is(ended, framework.ErrSessionReplaced) {
			return &lease.LostError{Path: path, Cause: ended}
		}
		return nil
	}
	return err
}
