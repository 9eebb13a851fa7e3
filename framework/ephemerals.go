package framework

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
)

// Ephemerals returns the sorted paths of the ephemeral znodes of the client's present session, at
// path and below it. If a call that created a znode returned before, the znode is among them, also
// if its reply was lost. Ephemerals is retried by the client's policy until ctx ends.
//
// A call costs the ensemble one transaction that changes nothing, because the server that replies
// may lag behind. Servers older than ZooKeeper 3.6 do not know the request: the error wraps
// [ErrUnsupported]. Finding that out costs the connection, so the client asks such a server once in
// ten minutes. Other errors are the errors of every operation.
func (c *Client) Ephemerals(ctx context.Context, path string) ([]string, error) {
	full := c.fullPath(path)
	if err := errors.Join(ValidatePath(path), c.core.checkSize(readSize+len(full))); err != nil {
		return nil, opError("ephemerals", path, err)
	}
	found, err := do(ctx, c.core, request{op: "ephemerals", path: full, session: c.session, repeat: repeatable}, func(ctx context.Context, s *session.Session) ([]string, error) {
		return ephemerals(ctx, s, full)
	})
	paths := make([]string, len(found))
	for i, p := range found {
		paths[i] = c.viewPath(p)
	}
	return paths, callError(ctx, "ephemerals", path, err)
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

// ephemeralsWith returns the session's ephemeral znodes whose paths begin with the prefix.
func ephemeralsWith(ctx context.Context, s *session.Session, prefix string) ([]string, error) {
	if err := session.Effect(ctx, s, func(w *zkconn.Conn) error { return w.Prove() }); err != nil {
		return nil, err
	}
	body, err := ask(ctx, s, proto.OpGetEphemerals, proto.AppendString(nil, prefix))
	if err != nil {
		return nil, err
	}
	d := proto.NewDecoder(body)
	paths := d.Strings()
	if d.End() != nil {
		return nil, errMalformed
	}
	return paths, nil
}
