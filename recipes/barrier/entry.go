package barrier

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/contender"
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
	double *Double
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
	for {
		in, err := e.step(ctx)
		switch {
		case err != nil && (ctx.Err() != nil || !waitqueue.Disconnected(err)):
			return err
		case in:
			err := e.grant.Session.Secure(ctx)
			e.grant.Breaks = e.grant.Session.Breaks()
			return err
		}
	}
}

// create creates the member's znode. Its name can't be protected, because Curator's is not, but it
// is random, so the znode is known by its data.
func (e *entry) create(ctx context.Context) error {
	d := e.double
	session, err := d.client.HoldSession(ctx)
	if err != nil {
		return err
	}
	e.grant = &waitqueue.Grant{Znode: hold.Znode{Client: d.client.InSession(session.Session()), Session: session}}
	e.name = rand.Text()
	e.grant.Path, err = e.grant.Client.Create(ctx, framework.JoinPath(d.path, e.name), contender.LocalAddress(),
		d.cfg.creation(framework.Ephemeral(), framework.KnownByData(), framework.ListTo(&e.listed), framework.StatTo(&e.grant.Stat))...)
	return err
}

// step looks once, and waits for a change unless the member is let in.
func (e *entry) step(ctx context.Context) (in bool, err error) {
	names, err := e.list(ctx)
	if err != nil {
		return false, err
	}
	members := membersOf(names)
	switch {
	case !slices.Contains(members, e.name):
		return false, errGone
	case len(members) >= e.double.members:
		return true, e.open(ctx)
	}
	e.seen.Waits(e.double.members - len(members))
	watch, err := e.grant.Client.Watch(ctx, e.double.ready(), framework.WatchExists)
	if err != nil {
		return false, err
	}
	defer watch.Close()
	st, exists := watch.Stat()
	switch {
	case exists && st.Czxid > e.grant.Stat.Czxid:
		return true, nil
	case exists && len(members) == 1:
		return false, e.removeReady(ctx)
	}
	err = e.await(ctx, watch, exists)
	return watch.Event() == framework.EventCreated, err
}

// list returns the children of the barrier's directory.
func (e *entry) list(ctx context.Context) ([]string, error) {
	if names := e.listed; names != nil {
		e.listed = nil
		return names, nil
	}
	names, _, err := e.grant.Client.Children(ctx, e.double.path)
	if errors.Is(err, framework.ErrNoNode) {
		err = errGone
	}
	return names, err
}

// open makes sure that there is a ready that was created after the member's znode.
func (e *entry) open(ctx context.Context) error {
	d, c := e.double, e.grant.Client
	for {
		_, err := c.Create(ctx, d.ready(), contender.LocalAddress(), d.cfg.creation()...)
		if !errors.Is(err, framework.ErrNodeExists) {
			return err
		}
		st, exists, err := c.Exists(ctx, d.ready())
		switch {
		case err != nil:
			return err
		case exists && st.Czxid > e.grant.Stat.Czxid:
			return nil
		case exists:
			if err := e.removeReady(ctx); err != nil {
				return err
			}
		}
	}
}

// removeReady deletes a ready that was there before the member.
func (e *entry) removeReady(ctx context.Context) error {
	return except(e.grant.Client.Delete(ctx, e.double.ready()), framework.ErrNoNode)
}

// await waits for a change of ready. If ready is an earlier one, await also watches the members,
// because a member that leaves or dies may leave it behind.
func (e *entry) await(ctx context.Context, ready *framework.Watch, earlier bool) error {
	watches := []*framework.Watch{ready}
	if earlier {
		members, err := e.grant.Client.Watch(ctx, e.double.path, framework.WatchChildren)
		if err != nil {
			return err
		}
		defer members.Close()
		watches = append(watches, members)
	}
	if err := await(ctx, e.grant.Client, watches...); err != nil {
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
		e.grant.Client.Discard(e.grant.Path)
	}
	e.grant.Session.Release()
}

// membersOf returns the names of the members' znodes, in order.
func membersOf(names []string) []string {
	members := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == readyName })
	slices.Sort(members)
	return members
}
