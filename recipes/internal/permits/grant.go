package permits

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// A grant is the grant of permits: a znode for each, and the deletion of the znode in the queue.
type grant struct {
	contender.Grant // of the first permit
	nodes           []*hold.Znode
	cleanup         *cleanup
}

// lease returns a lease of the grant, and starts the deletion of the znode in the queue, if there is one.
// The call does not wait for it. The release waits for it: see cleanup.
func (a *attempt) lease(ctx context.Context) *lease.Lease {
	closeWatch(a.own)
	closeWatch(a.number.watch)
	closeWatch(a.turn.Own)
	cleanup := &cleanup{gone: make(chan struct{})}
	p, first := a.pool, a.nodes[0]
	l := contender.NewLease(hold.Options{
		Client: first.Client,
		Path:   p.Path,
		Grant:  &grant{contender.Grant{Grant: &waitqueue.Grant{Znode: *first}, Of: p.Path, Recipe: p.Recipe}, a.nodes, cleanup},
		Znode:  first,
		More:   a.nodes[1:],
		Hooks:  a.acq.Granted(ctx, first.Fence(), first.Session.Session()),
	}, p.LossPolicy, p.Revoked)
	switch {
	case a.outOfTurn():
		close(cleanup.gone)
	case p.Revoked == nil:
		go cleanup.run(a.turn)
	default:
		go cleanup.runRevocable(a.turn, contender.ShareOf(l).Hold().RequestRelease)
	}
	return l
}

// Guards returns the guards of all permits.
func (g *grant) Guards() []framework.TxnOp {
	guards := make([]framework.TxnOp, len(g.nodes))
	for i, node := range g.nodes {
		guards[i] = node.Guards()[0]
	}
	return guards
}

// Release deletes the permits' znodes, and waits until the znode in the queue is gone too.
func (g *grant) Release(ctx context.Context) error {
	if err := g.Released(deleteNodes(ctx, g.nodes)); err != nil {
		return err
	}
	return g.Recipe.Error(g.Client, "release", g.Of, g.cleanup.wait(ctx))
}

// Discard deletes the permits' znodes in the background.
func (g *grant) Discard() {
	for _, node := range g.nodes[1:] {
		node.Discard()
	}
	g.Grant.Discard()
}

// deleteNodes deletes the znodes by one transaction. It returns the first error after which a znode
// may still exist, else one that says that a znode was gone before.
func deleteNodes(ctx context.Context, nodes []*hold.Znode) (err error) {
	for _, one := range waitqueue.DeleteAll(ctx, nodes) {
		if one != nil && (err == nil || over(err) && !over(one)) {
			err = one
		}
	}
	return err
}

// A cleanup is the deletion of what a granted attempt leaves behind: its znode in the queue.
type cleanup struct {
	gone chan struct{} // closed when err is set
	err  error         // why the znode may still exist
}

// run deletes the turn's znode. It is started with the grant, and the release waits for it. It
// ends with the reply to the deletion, or with the client or the session.
func (c *cleanup) run(turn *waitqueue.Grant) {
	defer close(c.gone)
	// If this fails, the client continues until the znode is gone.
	err := turn.Client.Delete(context.Background(), turn.Path, framework.Guaranteed()) //nolint:forbidigo // the caller has the permits by now, and does not wait
	if !over(err) {
		c.err = err
	}
}

// runRevocable is run for a contender that may have been asked to release while it waited: by its
// znode in the queue, the only one that others then saw. It deletes the data that it has read, so no
// request gets lost in between.
func (c *cleanup) runRevocable(turn *waitqueue.Grant, requested func()) {
	ctx := context.Background() //nolint:forbidigo // as run
	for {
		data, st, err := turn.Client.Get(ctx, turn.Path)
		if err != nil {
			break
		}
		if queuenode.RequestsRelease(data, st.Version) {
			requested()
			break
		}
		if err := turn.Client.Delete(ctx, turn.Path, framework.AtVersion(st.Version)); !errors.Is(err, framework.ErrBadVersion) {
			break
		}
	}
	c.run(turn)
}

// wait returns when the znode is gone, or why it may still exist.
func (c *cleanup) wait(ctx context.Context) error {
	select {
	case <-c.gone:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// over reports whether a deletion that failed with err has nothing left to delete.
func over(err error) bool {
	return errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrSessionEnded) || errors.Is(err, framework.ErrClosed)
}
