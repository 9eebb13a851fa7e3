package main

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/docent-go/docent/framework"
)

// A Baton is a recipe: at most one client carries the baton of a path at a time.
type Baton struct {
	client *framework.Client
	path   string // of the carrier's znode
}

// A Carried is the baton in the hands of this client.
type Carried struct {
	client *framework.Client // bound to the session that the baton is carried in
	path   string
	hold   *framework.SessionHold
	czxid  int64
}

// Take waits until no other client carries the baton, and returns it. If ctx ends first, the error
// wraps ctx's, and no znode of the call remains.
func (b *Baton) Take(ctx context.Context) (*Carried, error) {
	for {
		carried, err := b.try(ctx)
		switch {
		case err == nil:
			return carried, nil
		case errors.Is(err, framework.ErrNodeExists):
			if err := b.wait(ctx); err != nil {
				return nil, err
			}
		case !errors.Is(err, framework.ErrSessionEnded):
			return nil, err
		} // a session that ended took its znode with it: try in the next one
	}
}

// try makes one attempt in the present session.
func (b *Baton) try(ctx context.Context) (*Carried, error) {
	hold, err := b.client.HoldSession(ctx) // the client keeps the session's deadline fresh
	if err != nil {
		return nil, err
	}
	carried := &Carried{client: b.client.InSession(hold.Session()), path: b.path, hold: hold}
	var st framework.Stat
	_, err = carried.client.Create(ctx, b.path, []byte(rand.Text()), // another text for each attempt
		framework.Ephemeral(), framework.KnownBySession(), framework.WithParents(), framework.StatTo(&st))
	if err != nil {
		hold.Release()
		return nil, err // if the znode was created, the client deletes it
	}
	carried.czxid = st.Czxid
	if err := hold.Secure(ctx); err != nil { // from now on Lost is closed at the deadline
		carried.Drop()
		return nil, err
	}
	return carried, nil
}

// wait returns when the carrier's znode may be gone.
func (b *Baton) wait(ctx context.Context) error {
	w, err := b.client.Watch(ctx, b.path, framework.WatchData)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Close()
	select {
	case <-w.Fired():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Lost is closed when the session is over: before another client can take the baton.
func (c *Carried) Lost() <-chan struct{} { return c.hold.Lost() }

// Fence returns a number that grows from each carrier to the next.
func (c *Carried) Fence() int64 { return c.czxid }

// Return gives the baton back. If ctx ends before the znode is gone, the client goes on to delete it.
func (c *Carried) Return(ctx context.Context) error {
	defer c.hold.Release()
	return c.client.Delete(ctx, c.path, framework.CreatedBy(c.czxid), framework.Guaranteed(), framework.Idempotent())
}

// Drop gives the baton back in the background.
func (c *Carried) Drop() {
	c.client.Discard(c.path, framework.CreatedBy(c.czxid))
	c.hold.Release()
}
