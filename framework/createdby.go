package framework

import (
	"cmp"
	"context"

	"github.com/docent-go/docent/framework/internal/session"
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
	switch meant := cmp.Or(x.czxid, d.czxid); {
	case meant != 0:
		return x.stands(ctx, s, meant, d)
	case d.chooses && !d.earlier:
		return x.choose(ctx, s, d)
	}
	return d.settle(ctx, s, x.path, nil)
}

// choose makes d mean the znode that exists now. So a deletion that is to outlive sessions can tell
// that znode from a later one, whatever happens.
func (x deletion) choose(ctx context.Context, s *session.Session, d *doubt) error {
	found, err := readStat(ctx, s, x.path)
	switch {
	case err != nil:
		return unwritten(ctx, err)
	case !found.Exists:
		return ErrNoNode
	}
	d.czxid = found.Stat.Czxid
	return nil
}

// stands returns nil if the znode with the czxid still exists at the path.
func (x deletion) stands(ctx context.Context, s *session.Session, czxid int64, d *doubt) error {
	found, err := readSynced(ctx, s, x.path)
	switch {
	case err != nil && !d.earlier:
		return unwritten(ctx, err)
	case err != nil:
		return err
	case found.Exists && found.Stat.Czxid == czxid:
		return nil
	case d.earlier:
		return maybeEarlier(ErrNoNode)
	}
	return ErrNoNode
}
