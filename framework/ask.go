package framework

import (
	"context"
	"slices"
	"strings"

	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
)

// An Identity is an identity of the client at a server, as an ACL names it.
type Identity struct {
	Scheme string // as in "ip", "digest", "sasl", "x509"
	ID     string // the user; of scheme "digest" without the hash of the password
}

// WhoAmI returns the identities that the present connection has at its server: the client's
// address, and one for each credential that was accepted. It is retried by the client's policy
// until ctx ends. Servers older than ZooKeeper 3.7 do not know the request: the error wraps
// [ErrUnsupported], and the server closes the connection. Other errors are the errors of every operation.
func (c *Client) WhoAmI(ctx context.Context) ([]Identity, error) {
	ids, err := do(ctx, c.core, request{op: "whoAmI", session: c.session, reads: true}, func(ctx context.Context, s *session.Session) ([]Identity, error) {
		return session.Call(ctx, s, requests.Of(proto.OpWhoAmI, nil, identities))
	})
	return ids, c.callError(ctx, "whoAmI", "", err)
}

func identities(d *proto.Decoder) []Identity {
	ids := make([]Identity, d.Count(2*proto.LengthSize))
	for i := range ids {
		ids[i] = Identity{Scheme: d.Path(), ID: d.Path()}
	}
	_ = d.End() // its caller checks
	return ids
}

// Ephemerals returns the sorted paths of the ephemeral znodes of the client's present session, at
// path and below it. If a call that created a znode returned before, the znode is among them, even
// if its reply was lost. Ephemerals is retried by the client's policy until ctx ends.
//
// A call costs the ensemble one transaction that changes nothing, because the server that replies
// may lag behind. Errors are the errors of every operation.
func (c *Client) Ephemerals(ctx context.Context, path string) ([]string, error) {
	full, err := c.readPath(path)
	if err != nil {
		return nil, c.opError("ephemerals", path, err)
	}
	found, err := do(ctx, c.core, request{op: "ephemerals", path: full, session: c.session}, func(ctx context.Context, s *session.Session) ([]string, error) {
		return ephemerals(ctx, s, full)
	})
	paths := make([]string, len(found))
	for i, p := range found {
		paths[i] = c.viewPath(p)
	}
	return paths, c.callError(ctx, "ephemerals", path, err)
}

func ephemerals(ctx context.Context, s *session.Session, path string) ([]string, error) {
	paths, err := ephemeralsWith(ctx, s, path)
	if err != nil {
		return nil, err
	}
	// To the server, path is the start of a string: /a is the start of /ab, too.
	below := strings.TrimSuffix(path, "/") + "/"
	paths = slices.DeleteFunc(paths, func(p string) bool { return p != path && !strings.HasPrefix(p, below) })
	slices.Sort(paths)
	return paths, nil
}

// owns reports whether the session has an ephemeral znode at the path. It needs no permission: since 3.8.4 and
// 3.9.2, exists needs READ.
func owns(ctx context.Context, s *session.Session, path string) (bool, error) {
	own, err := ephemeralsWith(ctx, s, path)
	return slices.Contains(own, path), err
}

// ephemeralsWith returns the session's ephemeral znodes whose paths begin with the prefix.
func ephemeralsWith(ctx context.Context, s *session.Session, prefix string) ([]string, error) {
	if err := session.Effect(ctx, s, requests.Prove()); err != nil {
		return nil, err
	}
	return session.Call(ctx, s, requests.Of(proto.OpGetEphemerals, proto.AppendString(nil, prefix), func(d *proto.Decoder) []string {
		paths := d.Strings()
		_ = d.End() // its caller checks
		return paths
	}))
}

// Ready returns nil if the client can work now. If so, it has a connection, and a quorum of the
// ensemble has committed a transaction of its session, sent after the call. The transaction changes
// nothing and needs no permission. A call costs the ensemble one such transaction.
//
// Ready is for health probes, so it waits for no connection and repeats nothing. If the client is
// not Connected, Ready returns [ErrNotConnected], [ErrReadOnly], [ErrAuthFailed] or [ErrClosed] at
// once. If ctx ends first, or the connection breaks, the error wraps [ErrUnknownOutcome], and ctx's
// error if ctx ended.
func (c *Client) Ready(ctx context.Context) error {
	usercall.Require("ctx", ctx != nil)
	s, err := c.core.connected()
	if err == nil {
		err = session.Effect(ctx, s, requests.Prove())
	}
	return c.callError(ctx, "ready", "", err)
}

// connected returns the session if the client is Connected.
func (c *core) connected() (*session.Session, error) {
	c.mu.Lock()
	state, s := c.state, c.session
	c.mu.Unlock()
	switch {
	case state == Connected && s.Ended() == nil:
		return s, nil
	case state == Closed || c.ctx.Err() != nil:
		return nil, ErrClosed
	case state == AuthFailed:
		return nil, c.refusal()
	case state == ReadOnly:
		return nil, ErrReadOnly
	}
	return nil, c.notConnected()
}
