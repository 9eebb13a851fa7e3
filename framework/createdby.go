package framework

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
)

// CreatedBy makes Delete delete only the znode that the transaction czxid created ([Stat] has it),
// and not a later znode at the path. If the reply to an attempt was lost, and in the background,
// the client checks the znode before it deletes again. If another transaction created that znode,
// the meant znode is gone. Only the first request is sent without a check. If the caller does not
// know whether the znode exists, it has to check that first with [Client.Exists].
func CreatedBy(czxid int64) DeleteOption {
	return deleteOption(func(cfg *deleteConfig) { cfg.czxid = czxid })
}

// A looking says when a deletion that means one czxid checks the znode before it deletes.
type looking int

const (
	lookFirst      looking = iota + 1 // at every attempt; there is one, and its caller repeats it
	lookAfterDoubt                    // once an attempt's outcome is unknown
)

// stands reports whether the meant znode still exists. It reads after a sync, because the server
// may lag behind the server of an earlier attempt.
func (x deletion) stands(ctx context.Context, s *session.Session) (bool, error) {
	if err := session.Effect(ctx, s, func(w *zkconn.Conn) error { return w.Sync(x.path) }); err != nil {
		return false, err
	}
	found, err := session.Call(ctx, s, func(w *zkconn.Conn) (proto.Node, error) { return w.Exists(x.path) })
	if errors.Is(err, ErrNoNode) {
		return false, nil
	}
	return found.Exists && found.Stat.Czxid == x.czxid, err
}
