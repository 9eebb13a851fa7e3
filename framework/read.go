package framework

import (
	"context"
	"errors"
)

// syncOp is the only operation in this file that needs a leader.
const syncOp = "sync"

// read does one kind of read. It is retried, because a second read has no effect.
func (c *Client) read(ctx context.Context, op, path string, ask func(w *wire, full string) (nodeState, error)) (nodeState, error) {
	full := c.fullPath(path)
	if err := errors.Join(ValidatePath(path), c.core.checkSize(readSize+len(full))); err != nil {
		return nodeState{}, err
	}
	return do(ctx, c.core, request{op: op, path: full, session: c.session, repeat: repeatable, reads: op != syncOp}, func(ctx context.Context, s *session) (nodeState, error) {
		return call(ctx, s, func(w *wire) (nodeState, error) { return ask(w, full) })
	})
}

// Get returns the znode's data and Stat. It is retried by the client's policy until ctx ends.
// Errors: [ErrNoNode], [ErrNoAuth], [ErrNotGzip] (with [WithCompression]), and the errors of every
// operation, which the package's section Errors lists.
func (c *Client) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	data, st, err := c.get(ctx, path)
	return data, st, callError(ctx, "get", path, err)
}

func (c *Client) get(ctx context.Context, path string) ([]byte, Stat, error) {
	found, err := c.read(ctx, "get", path, (*wire).get)
	if err != nil {
		return nil, Stat{}, err
	}
	data, err := c.core.cfg.unpack(found.data)
	return data, found.stat, err
}

// Exists reports whether the znode exists, and its Stat if it does. It is retried by the client's
// policy until ctx ends. ok is false with every error.
func (c *Client) Exists(ctx context.Context, path string) (st Stat, ok bool, err error) {
	found, err := c.read(ctx, "exists", path, (*wire).exists)
	if errors.Is(err, ErrNoNode) {
		return Stat{}, false, nil
	}
	return found.stat, found.exists, callError(ctx, "exists", path, err)
}

// Children returns the names of the znode's children, in no order, and the Stat of the znode
// itself. It is retried by the client's policy until ctx ends. Errors: [ErrNoNode], [ErrNoAuth],
// and the errors of every operation.
func (c *Client) Children(ctx context.Context, path string) ([]string, Stat, error) {
	found, err := c.read(ctx, "children", path, (*wire).children)
	return found.children, found.stat, callError(ctx, "children", path, err)
}

// Sync makes the server that the client is connected to catch up with the leader. If a read of this
// client begins after Sync returned, it sees every change that was made before the call of Sync.
// Sync is retried by the client's policy until ctx ends.
func (c *Client) Sync(ctx context.Context, path string) error {
	_, err := c.read(ctx, syncOp, path, func(w *wire, full string) (nodeState, error) {
		return nodeState{}, w.Sync(full)
	})
	return callError(ctx, syncOp, path, err)
}

// ACL returns the znode's ACL and Stat. It is retried by the client's policy until ctx ends.
// Errors: [ErrNoNode], [ErrNoAuth], and the errors of every operation.
func (c *Client) ACL(ctx context.Context, path string) ([]ACL, Stat, error) {
	found, err := c.read(ctx, "get ACL of", path, func(w *wire, full string) (nodeState, error) {
		entries, st, err := w.getACL(full)
		return nodeState{stat: st, acl: entries}, err
	})
	return found.acl, found.stat, callError(ctx, "get ACL of", path, err)
}
