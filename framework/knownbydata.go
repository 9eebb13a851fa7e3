package framework

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
)

// KnownByData makes Create find its znode again if the reply was lost, as [Protected] does, but
// under a given name. Create takes the znode at the path for its own if it belongs to the client's
// present session and holds exactly the data. So while a znode exists that the client created at
// the path, another create of the path has to carry other data: put a random id in. An
// [ErrNodeExists] certainly means that the znode is not from this call.
//
// If Create fails nevertheless, the znode may exist or may still be created. The client then
// deletes it in the background until it is gone or its session has ended.
//
// Such creates of one path in one client run one after another. A create waits until the outcome of
// an earlier create is known and its deletion is over, or until ctx ends. KnownByData requires
// [Ephemeral], and excludes [Sequential] and Protected.
func KnownByData() CreateOption {
	return createOption(func(cfg *createConfig) { cfg.given |= withData })
}

// claims are the paths at which a create that is known by its data is under way or has an unknown
// outcome.
type claims struct {
	mu      sync.Mutex
	settled map[string]chan struct{} // closed, and deleted from the map, once the outcome is known
}

type claimsKey struct{}

func (c *Client) claims() *claims {
	return c.Shared(claimsKey{}, func() any { return &claims{settled: make(map[string]chan struct{})} }).(*claims)
}

// enter waits until no other create claims the path, and claims it until settle is called.
func (cl *claims) enter(ctx context.Context, c *core, path string) (settle func(), err error) {
	for {
		cl.mu.Lock()
		other, taken := cl.settled[path]
		if !taken {
			own := make(chan struct{})
			cl.settled[path] = own
			cl.mu.Unlock()
			return func() { cl.leave(path, own) }, nil
		}
		cl.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.ctx.Done():
			return nil, ErrClosed
		}
	}
}

func (cl *claims) leave(path string, own chan struct{}) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	delete(cl.settled, path)
	close(own)
}

// searchAt is search for a znode that is known by its data.
func (g *protection) searchAt(ctx context.Context, s *session.Session, path string) (string, Stat, error) {
	if g.epoch != nil {
		if err := g.epoch.read(ctx, s); err != nil {
			return "", Stat{}, err
		}
	}
	found, err := session.Call(ctx, s, func(w *zkconn.Conn) (proto.Node, error) { return w.Get(path) })
	switch {
	case errors.Is(err, ErrNoNode):
		return "", Stat{}, nil
	case err != nil:
		return "", Stat{}, err
	case found.Stat.EphemeralOwner != s.ID() || !bytes.Equal(found.Data, g.data):
		return "", Stat{}, nil
	}
	return path, statOf(found.Stat), nil
}
