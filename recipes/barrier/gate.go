package barrier

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/membership"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A gate is the place where members meet, by the protocol of Apache Curator's DistributedDoubleBarrier.
// It is immutable.
type gate struct {
	client  *framework.Client
	path    string
	members int                      // that have to enter
	acl     []framework.CreateOption // of znodes: WithACL, or nothing
}

// full returns the barrier's path in the ensemble.
func (g *gate) full() string { return g.client.AbsolutePath(g.path) }

// enter waits until all members are in, and returns the caller's place. If the session ends
// meanwhile, it enters again in the next session. If it fails, the place is gone, or its deletion
// continues in the background.
func (g *gate) enter(ctx context.Context, acq *telemetry.Acquire) (*waitqueue.Grant, error) {
	long := waitqueue.LongWait{Report: contender.LogLongWait(g.client, "other members to enter", g.path, "")}
	leaving := waitqueue.LongWait{Report: contender.LogLongWait(g.client, "members of the former round to leave", g.path, "")}
	if err := g.awaitFormer(ctx, &leaving); err != nil {
		return nil, err
	}
	for rounds := pace.Rounds(); ; {
		e := &entry{gate: g, acq: acq, long: &long}
		_, err := contender.RunAttempt(ctx, func() error {
			return e.run(ctx)
		}, func() *waitqueue.Grant {
			return e.grant
		}, func(err error) error {
			e.withdraw()
			return err
		})
		if err == nil {
			return e.grant, nil
		}
		if !errors.Is(err, framework.ErrSessionEnded) && !errors.Is(err, errGone) {
			return nil, err
		}
		if err := rounds.Wait(ctx, 1); err != nil {
			return nil, err
		}
	}
}

// except returns err, or nil if err is the one that is no failure.
func except(err, noFailure error) error {
	if errors.Is(err, noFailure) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// An entry is a member's way in, in one session. One goroutine uses it.
//
// The member that is created last sees all members in its listing, and creates ready. A ready lets a
// member in only if it was created after the member's znode. An earlier one is of members that are
// leaving, or was left behind by one that died.
type entry struct {
	gate   *gate
	acq    *telemetry.Acquire
	grant  *waitqueue.Grant // the member's znode; nil before
	name   string           // of the znode
	listed []string         // names that were listed along with its creation; nil once used
	long   *waitqueue.LongWait
}

// errGone means that another client deleted the member's znode.
var errGone = errtype.New("own node is gone", errtype.Other)

// run returns nil when the member is let in.
func (e *entry) run(ctx context.Context) error {
	if err := e.create(ctx); err != nil {
		return err
	}
	for rounds := pace.Rounds(); ; {
		if err := rounds.Wait(ctx, 1); err != nil {
			return err
		}
		in, err := e.step(ctx)
		switch {
		case err != nil && (ctx.Err() != nil || !waitqueue.Disconnected(err)):
			return err
		case in && err == nil:
			err := e.grant.Session.Secure(ctx)
			e.grant.Breaks = e.grant.Session.Breaks()
			return err
		}
	}
}

// create creates the member's znode, once those of earlier calls are gone. Its name can't be protected,
// because Curator's is not, but it is random, so the znode is told by its name and session.
func (e *entry) create(ctx context.Context) error {
	g := e.gate
	session, err := g.client.HoldSession(ctx)
	if err != nil {
		return err
	}
	c := g.client.InSession(session.Session())
	e.grant = &waitqueue.Grant{Znode: hold.Znode{Client: c, Session: session}}
	names, done := membership.NamesOf(c, g.path)
	defer done()
	return names.Create(ctx, c, session.Session(), func(name string, opts []framework.CreateOption) (err error) {
		e.name = name
		e.grant.Path, err = c.Create(ctx, zkpath.Join(g.path, name), contender.LocalAddress(), opts...)
		return err
	}, append(slices.Clip(g.acl), framework.WithParents(), framework.ListTo("", &e.listed), framework.StatTo(&e.grant.Stat))...)
}

// step looks once, and waits for a change unless the member is let in.
func (e *entry) step(ctx context.Context) (in bool, err error) {
	d, err := e.list(ctx)
	if err != nil {
		return false, err
	}
	members := membersOf(d.names)
	switch {
	case !slices.Contains(members, e.name):
		return false, errGone
	case len(members) >= e.gate.members:
		return e.gate.open(ctx, e.grant, d)
	}
	e.acq.Waits(e.gate.members - len(members))
	watch, err := e.grant.Client.Watch(ctx, e.gate.ready(), framework.WatchExists)
	if err != nil {
		return false, err
	}
	defer watch.Close()
	st, exists := watch.Stat()
	switch {
	case exists && st.Czxid > e.grant.Stat.Czxid:
		return true, nil
	case exists && len(members) == 1:
		return false, e.gate.removeReady(ctx, e.grant.Client, d)
	}
	err = e.await(ctx, watch, exists)
	return watch.Event() == framework.EventCreated, err
}

// list lists the barrier's directory.
func (e *entry) list(ctx context.Context) (directory, error) {
	if names := e.listed; names != nil {
		e.listed = nil
		return directory{names: names, version: unknownVersion}, nil
	}
	d, err := e.gate.list(ctx, e.grant.Client)
	if errors.Is(err, framework.ErrNoNode) {
		err = errGone
	}
	return d, err
}

// await waits for a change of ready. If ready is an earlier one, await also watches the members,
// because a member that leaves or dies may leave it behind.
func (e *entry) await(ctx context.Context, ready *framework.Watch, earlier bool) error {
	var members *framework.Watch
	if earlier {
		var err error
		if members, err = e.grant.Client.Watch(ctx, e.gate.path, framework.WatchChildren); err != nil {
			return err
		}
		defer members.Close()
	}
	err := e.long.Await(ctx, e.grant.Session, func() waitqueue.Blocker { return e.missing(ctx) }, ready, members, nil)
	return cmp.Or(err, e.grant.Session.Err())
}

// missing returns how many members have yet to enter. It lists them, because no watch shows that.
func (e *entry) missing(ctx context.Context) waitqueue.Blocker {
	d, err := e.gate.list(ctx, e.grant.Client)
	if err != nil {
		return waitqueue.Blocker{Ahead: -1}
	}
	return waitqueue.Blocker{Ahead: e.gate.members - len(membersOf(d.names))}
}

// withdraw deletes the member's znode in the background.
func (e *entry) withdraw() {
	if e.grant == nil {
		return
	}
	if e.grant.Path != "" {
		(&place{Grant: contender.Grant{Grant: e.grant}, gate: e.gate}).Discard()
		return
	}
	e.grant.Session.Release()
}

// A place is the grant of a member: its znode. The client's next Enter waits until that is gone.
type place struct {
	contender.Grant
	gate *gate
	last atomic.Pointer[directory] // the listing with ready by which the member is the last one that is in; nil for none
}

// Release deletes the znode. If the session ends meanwhile, Release deletes the znode in the next
// session, because it would be counted in the next use of the barrier until the ensemble has ended
// the session.
func (p *place) Release(ctx context.Context) error {
	maybeGone, refused := p.deleteWithReady(ctx)
	err := p.Client.Delete(ctx, p.Path, p.deletion()...)
	if maybeGone {
		err = except(err, framework.ErrNoNode)
	}
	released := p.Released(err)
	if released == nil && errors.Is(err, framework.ErrSessionEnded) {
		_, name := zkpath.Split(p.Path)
		return p.Recipe.Error(p.Client, "release", p.Of, p.gate.ensureGone(ctx, name))
	}
	return cmp.Or(released, p.Recipe.Error(p.Client, "release", p.Of, refused))
}

// deleteWithReady deletes the last member's znode along with ready, across outages: a client that finds no ready meets
// no member of the round, see listFormer. If ready or the directory has changed, it does nothing, nor if ctx or the
// session ends. It returns an error if a server refuses.
func (p *place) deleteWithReady(ctx context.Context) (maybeGone bool, err error) {
	listed := p.last.Load()
	if listed == nil {
		return false, nil
	}
	for rounds := pace.Rounds(); ; {
		err := p.gate.deleteReady(ctx, p.Client, *listed, framework.OpDelete(p.Path, framework.AnyVersion))
		maybeGone = maybeGone || err == nil || errors.Is(err, framework.ErrUnknownOutcome)
		switch {
		case err == nil || changed(err) || ctx.Err() != nil || p.Session.Err() != nil:
			return maybeGone, nil //nolint:nilerr // the deletion that follows says what it is about
		case !waitqueue.Disconnected(err):
			return maybeGone, err
		}
		if rounds.Wait(ctx, 1) != nil {
			return maybeGone, nil //nolint:nilerr // as above
		}
	}
}

// Discard deletes the znode in the background.
func (p *place) Discard() {
	p.Grant.Grant.Discard(p.deletion()...)
	p.Session.Release()
}

func (p *place) deletion() []framework.DeleteOption {
	dir, name := zkpath.Split(p.Path)
	names, done := membership.NamesOf(p.Client, dir)
	defer done()
	return names.Delete(name, p.Session.Session())
}

// ensureGone returns when the znode of a member that has been released is gone.
func (g *gate) ensureGone(ctx context.Context, name string) error {
	names, done := membership.NamesOf(g.client, g.path)
	defer done()
	return names.AwaitGone(ctx, g.client, name)
}
