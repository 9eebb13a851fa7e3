package framework

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
)

// AnyVersion matches every version of a znode. A znode's own version overflows after 2147483647, and
// reaches this number after 4294967295 writes. A write that gives that version is not conditional.
const AnyVersion int32 = -1

// Set replaces the znode's data and returns the new Stat. The znode's version must equal the given
// version; [AnyVersion] matches every version.
//
// Set is retried by the client's policy until ctx ends. If the reply to an attempt was lost and the
// next attempt finds another version, the first attempt may have caused it. The error then wraps
// both [ErrBadVersion] and [ErrUnknownOutcome], unless [Idempotent] resolves it. If a reply was
// lost and the znode may have been created since, Set does not write and returns ErrUnknownOutcome.
//
// Other errors: [ErrNoNode], [ErrNoAuth], [ErrTooLarge], and the errors of every operation. If ctx
// ends first, the error wraps ctx's error, and ErrUnknownOutcome if a request was sent.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32, opts ...SetOption) (Stat, error) {
	var cfg setConfig
	for _, opt := range opts {
		opt.applySet(&cfg)
	}
	st, err := c.set(ctx, path, data, version, cfg.tolerated()...)
	if cfg.idempotent && errors.Is(err, ErrBadVersion) {
		st, err = c.settleSet(ctx, path, data, version, err)
	}
	return st, callError(ctx, "set", path, err)
}

func (c *Client) set(ctx context.Context, path string, data []byte, version int32, tolerated ...error) (Stat, error) {
	packed := c.core.cfg.pack(data)
	return c.write(ctx, change{
		op: "set", path: path, version: version, size: setSize + len(packed), tolerates: tolerated,
		ask: func(w *zkconn.Conn, full string) (proto.Stat, error) { return w.Set(full, packed, version) },
	})
}

// settleSet returns nil in place of err if the znode is as the Set would have left it.
func (c *Client) settleSet(ctx context.Context, path string, data []byte, version int32, err error) (Stat, error) {
	got, st, readErr := c.get(ctx, path)
	switch {
	case readErr != nil:
		return Stat{}, errors.Join(err, opError("get", path, readErr))
	case st.Version == version+1 && bytes.Equal(got, data):
		return st, nil
	}
	return Stat{}, err
}

// SetACL replaces the znode's ACL. The ACL's version (Stat.Aversion) must equal the given version;
// [AnyVersion] matches every version. SetACL is retried as [Client.Set] is, with the same errors,
// and [ErrInvalidACL].
func (c *Client) SetACL(ctx context.Context, path string, acl []acl.Entry, version int32) (Stat, error) {
	if err := validateACL("ACL", acl); err != nil {
		return Stat{}, opError("set ACL of", path, err)
	}
	st, err := c.write(ctx, change{
		op: "set ACL of", path: path, version: version, size: setSize + aclSize(acl),
		ask: func(w *zkconn.Conn, full string) (proto.Stat, error) { return w.SetACL(full, wireACL(acl), version) },
	})
	return st, callError(ctx, "set ACL of", path, err)
}

// A change is a write that depends on a version, so it can be repeated.
type change struct {
	op, path  string
	version   int32
	size      int     // size of the request without its path, in bytes
	tolerates []error // see request
	ask       func(w *zkconn.Conn, full string) (proto.Stat, error)
}

func (c *Client) write(ctx context.Context, ch change) (Stat, error) {
	full := c.fullPath(ch.path)
	if err := errors.Join(ValidatePath(ch.path), c.core.checkSize(ch.size+len(full))); err != nil {
		return Stat{}, err
	}
	var doubt doubt
	return do(ctx, c.core, request{op: ch.op, path: full, session: c.session, repeat: repeatable, tolerates: ch.tolerates}, func(ctx context.Context, s *session.Session) (Stat, error) {
		if err := doubt.settle(ctx, s, full); err != nil {
			return Stat{}, err
		}
		st, err := session.Call(ctx, s, func(w *zkconn.Conn) (proto.Stat, error) { return ch.ask(w, full) })
		if err != nil {
			return Stat{}, doubt.about(err, ErrBadVersion)
		}
		return statOf(st), nil
	})
}

// CreateOrSet replaces the znode's data, whatever its version, or creates the znode if there is
// none, and returns the new Stat. It takes the options of Create that keep the name and the number
// of znodes: not [Sequential], [Protected] or [Idempotent]. It is retried, and fails, as
// [Client.Set] and [Client.Create] are. If other clients keep deleting and creating the znode, it
// continues until ctx ends.
func (c *Client) CreateOrSet(ctx context.Context, path string, data []byte, opts ...CreateOption) (Stat, error) {
	var cfg createConfig
	for _, opt := range opts {
		opt.applyCreate(&cfg)
	}
	if cfg.has(withSequential | withProtected | withIdempotent) {
		return Stat{}, opError("create or set", path, errors.New("options: must not be Sequential, Protected or Idempotent"))
	}
	for {
		st, err := c.set(ctx, path, data, AnyVersion, ErrNoNode)
		if !errors.Is(err, ErrNoNode) {
			return st, callError(ctx, "set", path, err)
		}
		_, err = c.create(ctx, path, data, append(slices.Clip(opts), StatTo(&st)))
		if !errors.Is(err, ErrNodeExists) {
			return st, callError(ctx, "create", path, err)
		}
	}
}
