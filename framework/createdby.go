package framework

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
)

// CreatedBy makes Delete delete only the znode that the transaction czxid created ([Stat] has it),
// and not a later znode at the path. Before each attempt the client reads the znode, after a sync.
// If another transaction created that znode, the meant znode is gone, as [ErrNoNode] says. ZooKeeper
// has no check of a czxid: a znode that is replaced within the round trip of the deletion is deleted
// nevertheless. With [AtEpoch] it is not.
func CreatedBy(czxid int64) DeleteOption {
	return deleteOption(func(cfg *deleteConfig) { cfg.czxid = czxid })
}

// attempts says how many attempts a deletion makes.
type attempts int

const (
	oneAttempt attempts = iota + 1 // its caller repeats it
	byPolicy                       // as the client's policy says
)

// check is called before each attempt. It returns an error if the attempt could delete another znode
// than the meant one.
func (x deletion) check(ctx context.Context, s *session.Session, d *doubt) error {
	if x.czxid == 0 {
		return d.settle(ctx, s, x.path)
	}
	stands, err := x.stands(ctx, s)
	if err == nil && !stands {
		err = ErrNoNode
	}
	return err
}

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
