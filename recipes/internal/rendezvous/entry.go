package rendezvous

import (
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/former"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// An entry is a member's way in, in one session. One goroutine uses it.
//
// The member that is created last sees all members in its listing, and creates ready. A ready lets a
// member in only if it was created after the member's znode. An earlier one is of members that are
// leaving, or was left behind by one that died.
type entry struct {
	gate   *Gate
	seen   *telemetry.Acquire
	grant  *waitqueue.Grant // the member's znode; nil before
	name   string           // of the znode
	listed []string         // names that were listed along with its creation; nil once used
}

// errGone means that another client deleted the member's znode.
var errGone = errors.New("own node is gone")

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
// because Curator's is not, but it is random, so the znode is known by its data.
func (e *entry) create(ctx context.Context) error {
	g := e.gate
	session, err := g.Client.HoldSession(ctx)
	if err != nil {
		return err
	}
	c := g.Client.InSession(session.Session())
	e.grant = &waitqueue.Grant{Znode: hold.Znode{Client: c, Session: session}}
	names, done := former.NamesOf(c, g.Path)
	defer done()
	return names.Create(ctx, c, session.Session(), func(name string, more ...framework.CreateOption) (err error) {
		e.name = name
		e.grant.Path, err = c.Create(ctx, framework.JoinPath(g.Path, name), contender.LocalAddress(),
			append(slices.Clip(g.ACL), framework.WithParents(), framework.Ephemeral(), framework.KnownByData(),
				framework.ListTo(&e.listed), framework.StatTo(&e.grant.Stat))...)
		return err
	})
}

// step looks once, and waits for a change unless the member is let in.
func (e *entry) step(ctx context.Context) (in bool, err error) {
	d, err := e.look(ctx)
	if err != nil {
		return false, err
	}
	members := membersOf(d.names)
	switch {
	case !slices.Contains(members, e.name):
		return false, errGone
	case len(members) >= e.gate.Members:
		return true, e.gate.open(ctx, e.grant, d)
	}
	e.seen.Waits(e.gate.Members - len(members))
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

// look lists the barrier's directory.
func (e *entry) look(ctx context.Context) (directory, error) {
	if names := e.listed; names != nil {
		e.listed = nil
		return directory{names, unknownVersion}, nil
	}
	d, err := e.gate.look(ctx, e.grant.Client)
	if errors.Is(err, framework.ErrNoNode) {
		err = errGone
	}
	return d, err
}

// await waits for a change of ready. If ready is an earlier one, await also watches the members,
// because a member that leaves or dies may leave it behind.
func (e *entry) await(ctx context.Context, ready *framework.Watch, earlier bool) error {
	watches := []*framework.Watch{ready}
	if earlier {
		members, err := e.grant.Client.Watch(ctx, e.gate.Path, framework.WatchChildren)
		if err != nil {
			return err
		}
		defer members.Close()
		watches = append(watches, members)
	}
	if err := waitqueue.AwaitFired(ctx, e.grant.Client, watches...); err != nil {
		return err
	}
	return e.grant.Session.Err()
}

// withdraw deletes the member's znode in the background.
func (e *entry) withdraw() {
	if e.grant == nil {
		return
	}
	if e.grant.Path != "" {
		(&Place{Grant: contender.Grant{Grant: e.grant}, Gate: e.gate}).Discard()
		return
	}
	e.grant.Session.Release()
}
