package framework

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
)

// syncOp is the only operation in this file that needs a leader.
const syncOp = "sync"

// read does one kind of read. It is retried, because a second read has no effect.
func read[T any](
	ctx context.Context, c *Client, op, path string, ask func(w *zkconn.Conn, full string) (T, error),
) (T, error) {
	full := c.fullPath(path)
	if err := errors.Join(ValidatePath(path), c.core.checkSize(readSize+len(full))); err != nil {
		var zero T
		return zero, err
	}
	rq := request{op: op, path: full, session: c.session, repeat: repeatable, reads: op != syncOp}
	return do(ctx, c.core, rq, func(ctx context.Context, s *session.Session) (T, error) {
		return session.Call(ctx, s, func(w *zkconn.Conn) (T, error) { return ask(w, full) })
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
	found, err := read(ctx, c, "get", path, (*zkconn.Conn).Get)
	if err != nil {
		return nil, Stat{}, err
	}
	data, err := c.core.cfg.unpack(found.Data)
	return data, statOf(found.Stat), err
}

// Exists reports whether the znode exists, and its Stat if it does. It is retried by the client's
// policy until ctx ends. ok is false with every error.
func (c *Client) Exists(ctx context.Context, path string) (st Stat, ok bool, err error) {
	found, err := read(ctx, c, "exists", path, (*zkconn.Conn).Exists)
	if errors.Is(err, ErrNoNode) {
		return Stat{}, false, nil
	}
	return statOf(found.Stat), found.Exists, callError(ctx, "exists", path, err)
}

// Children returns the names of the znode's children, in no order, and the Stat of the znode
// itself. It is retried by the client's policy until ctx ends. Errors: [ErrNoNode], [ErrNoAuth],
// and the errors of every operation.
func (c *Client) Children(ctx context.Context, path string) ([]string, Stat, error) {
	found, err := read(ctx, c, "children", path, (*zkconn.Conn).Children)
	return found.Children, statOf(found.Stat), callError(ctx, "children", path, err)
}

// Sync makes the server that the client is connected to catch up with the leader. If a read of this
// client begins after Sync returned, it sees every change that was made before the call of Sync.
// Sync is retried by the client's policy until ctx ends.
func (c *Client) Sync(ctx context.Context, path string) error {
	_, err := read(ctx, c, syncOp, path, func(w *zkconn.Conn, full string) (proto.Node, error) {
		return proto.Node{}, w.Sync(full)
	})
	return callError(ctx, syncOp, path, err)
}

// ACL returns the znode's ACL and Stat. It is retried by the client's policy until ctx ends.
// Errors: [ErrNoNode], [ErrNoAuth], and the errors of every operation.
func (c *Client) ACL(ctx context.Context, path string) ([]acl.Entry, Stat, error) {
	type reply struct {
		acl []zkconn.ACL
		st  proto.Stat
	}
	found, err := read(ctx, c, "get ACL of", path, func(w *zkconn.Conn, full string) (r reply, err error) {
		r.acl, r.st, err = w.GetACL(full)
		return r, err
	})
	if err != nil {
		return nil, Stat{}, callError(ctx, "get ACL of", path, err)
	}
	return aclOf(found.acl), statOf(found.st), nil
}
