package framework

import (
	"bytes"
	"context"
	"errors"
	"sync"
)

// KnownByData makes Create find its znode again when the reply was lost, as
// [Protected] does, where the name is given and can't tell it: what stands at
// the path is taken for this call's if it belongs to the client's present
// session and holds exactly the data. So while a znode stands that the client
// created at the path, another create of it has to carry other data: put a random
// id in. An [ErrNodeExists] is certain to be somebody else's doing. When Create
// fails all the same, the znode is deleted in the background, if it was created
// or still comes to be, until it is gone or its session has ended.
//
// Such creates of one path in one client follow one another: one that begins
// before another is settled, its deletion included, waits for that until ctx ends.
// It takes [Ephemeral], and neither [Sequential] nor Protected.
func KnownByData() CreateOption {
	return createOption(func(cfg *createConfig) { cfg.given |= withData })
}

// claims are the paths at which a create that is to be known by its data is
// under way or in doubt.
type claims struct {
	mu      sync.Mutex
	settled map[string]chan struct{} // closed, and gone from the map, when there is no doubt left
}

type claimsKey struct{}

func (c *Client) claims() *claims {
	return c.Shared(claimsKey{}, func() any { return &claims{settled: make(map[string]chan struct{})} }).(*claims)
}

// enter waits until nobody else has the path, and takes it until settle is called.
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
func (g *protection) searchAt(ctx context.Context, s *session, path string) (string, Stat, error) {
	if g.epoch != nil {
		if err := g.epoch.read(ctx, s); err != nil {
			return "", Stat{}, err
		}
	}
	found, err := call(ctx, s, func(w *wire) (nodeState, error) { return w.get(path) })
	switch {
	case errors.Is(err, ErrNoNode):
		return "", Stat{}, nil
	case err != nil:
		return "", Stat{}, err
	case found.stat.EphemeralOwner != s.ID() || !bytes.Equal(found.data, g.data):
		return "", Stat{}, nil
	}
	return path, found.stat, nil
}
