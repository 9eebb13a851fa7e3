package queue

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
)

// errGone means that the attempt's node is not in the queue any more.
var errGone = errors.New("queue: own node is gone")

// enter makes sure that there is a node of a session that stands.
func (a *Attempt) enter(ctx context.Context) error {
	if a.hold != nil && a.hold.Err() != nil {
		a.leave()
	}
	for a.node == "" {
		if err := a.bind(ctx); err != nil {
			return err
		}
		_, err := a.create(ctx)
		switch {
		case ctxerr.Is(err, framework.ErrSessionEnded):
			a.leave()
		case err != nil:
			return err
		}
	}
	return nil
}

func (a *Attempt) bind(ctx context.Context) error {
	if a.hold != nil {
		return nil
	}
	hold, err := a.queue.Client.HoldSession(ctx)
	if err != nil {
		return err
	}
	a.hold = hold
	a.client = a.queue.Client.InSession(hold.Session())
	if a.beside != nil && a.beside.Hold.Session() != hold.Session() {
		a.beside = nil
	}
	return nil
}

// book returns the ledger of the queue in the session that the attempt is bound to.
func (a *Attempt) book() *ledger {
	if a.ledger == nil {
		a.ledger, a.crowded = ledgersOf(a.client).join(a.queue, a.hold.Session())
	}
	return a.ledger
}

// unbook ends the use of the ledger.
func (a *Attempt) unbook() {
	if a.ledger != nil {
		ledgersOf(a.client).leave(a.ledger)
		a.ledger = nil
	}
}

// guardOf returns the watch as a guard, or nil: without one, each lists for itself.
func guardOf(w *framework.Watch, err error) guard {
	if err != nil {
		return nil
	}
	return w
}

// create creates the node, with what the plan asks for.
func (a *Attempt) create(ctx context.Context) (*creation, error) {
	c, ledger := a.creation(), a.book()
	if made := c.plan.makes; made != nil {
		set := guardOf(a.client.Watch(ctx, a.queue.Dir, framework.WatchData))
		defer func() { ledger.conclude(set, a.listed) }()
	}
	if a.beside == nil {
		q := a.queue // all that is the hook's: the attempt may have been given up by then
		c.opts = append(c.opts, framework.OnCreated(func(path string, st framework.Stat) {
			if node, ok := q.nodeAt(path); ok {
				ledger.arrive(q, node, st.Czxid)
			}
		}))
	}
	node, err := a.client.Create(ctx, framework.JoinPath(a.queue.Dir, c.name), a.data(), c.opts...)
	if err != nil {
		return nil, err
	}
	a.created(node, c)
	return c, nil
}

// A creation is how an attempt's node is to be created.
type creation struct {
	name string // without what framework and server add
	opts []framework.CreateOption
	plan plan

	names []string // of the directory's children, if listed
	dir   framework.Stat
}

func (a *Attempt) creation() *creation {
	c := &creation{name: a.kind, plan: plan{list: true}}
	c.opts = []framework.CreateOption{
		framework.Ephemeral(), framework.Protected(), framework.WithParents(), framework.StatTo(&a.stat),
	}
	if a.beside == nil {
		c.plan = a.book().plan(a.crowded)
		c.opts = append(c.opts, framework.Sequential())
	} else {
		c.name += a.besideNode().digits()
	}
	if c.plan.list {
		c.opts = append(c.opts, framework.ListTo(&c.names), framework.ListStatTo(&c.dir))
	}
	if a.queue.ACL != nil {
		c.opts = append(c.opts, framework.WithACL(a.queue.ACL...))
	}
	return c
}

// created takes over the node that the creation made, at the path.
func (a *Attempt) created(path string, c *creation) {
	a.node, a.fresh, a.awaits = path, true, c.plan.awaits
	a.self, _ = a.queue.nodeAt(path) // it has the name that was asked for
	if c.names == nil {
		return
	}
	found := a.queue.listing(c.names, c.dir)
	a.listed = &found
	if c.plan.makes == nil {
		a.book().renew(found)
	}
}

// nodeAt returns the contender at the path.
func (q *Queue) nodeAt(path string) (Node, bool) {
	_, name := framework.SplitPath(path)
	return parse(name, q.Kinds)
}
