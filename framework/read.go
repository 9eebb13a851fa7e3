package framework

import (
	"context"
	"errors"
)

// syncOp is the one operation below that takes a leader.
const syncOp = "sync"

// read does one kind of read, retried as its outcome does not matter.
func (c *Client) read(ctx context.Context, op, path string, ask func(w *wire, full string) (nodeState, error)) (nodeState, error) {
	full := c.fullPath(path)
	if err := errors.Join(ValidatePath(path), c.core.checkSize(readSize+len(full))); err != nil {
		return nodeState{}, err
	}
	return do(ctx, c.core, request{op: op, path: full, session: c.session, repeat: repeatable, reads: op != syncOp}, func(ctx context.Context, s *session) (nodeState, error) {
		return call(ctx, s, func(w *wire) (nodeState, error) { return ask(w, full) })
	})
}

// Get returns the znode's data and Stat. It is retried by the client's policy
// until ctx ends. Errors: [ErrNoNode], [ErrNoAuth], [ErrNotGzip] (see
// [WithCompression]), and those of every operation (see the package's section
// Errors).
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

// Exists reports whether the znode exists, and its Stat if it does. It is
// retried by the client's policy until ctx ends. ok is false with every error.
func (c *Client) Exists(ctx context.Context, path string) (st Stat, ok bool, err error) {
	found, err := c.read(ctx, "exists", path, (*wire).exists)
	if errors.Is(err, ErrNoNode) {
		return Stat{}, false, nil
	}
	return found.stat, found.exists, callError(ctx, "exists", path, err)
}

// Children returns the names, in no order, of the znode's children, and the
// znode's own Stat. It is retried by the client's policy until ctx ends. Errors:
// [ErrNoNode], [ErrNoAuth], and those of every operation.
func (c *Client) Children(ctx context.Context, path string) ([]string, Stat, error) {
	found, err := c.read(ctx, "children", path, (*wire).children)
	return found.children, found.stat, callError(ctx, "children", path, err)
}

// Sync makes the server that the client is connected to catch up with the
// leader: reads of this client that begin after it returned see all that had
// happened when it was called. It is retried by the client's policy until ctx ends.
func (c *Client) Sync(ctx context.Context, path string) error {
	_, err := c.read(ctx, syncOp, path, func(w *wire, full string) (nodeState, error) {
		return nodeState{}, w.Sync(full)
	})
	return callError(ctx, syncOp, path, err)
}

// ACL returns the znode's ACL and Stat. It is retried by the client's policy
// until ctx ends. Errors: [ErrNoNode], [ErrNoAuth], and those of every operation.
func (c *Client) ACL(ctx context.Context, path string) ([]ACL, Stat, error) {
	found, err := c.read(ctx, "get ACL of", path, func(w *wire, full string) (nodeState, error) {
		entries, st, err := w.getACL(full)
		return nodeState{stat: st, acl: entries}, err
	})
	return found.acl, found.stat, callError(ctx, "get ACL of", path, err)
}
