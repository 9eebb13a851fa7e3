package sim_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/zkserver"
)

// A place in the double barrier is a lease of a target that all members share, so loss before
// succession applies to it.

// meetingKind is the kind of the target, and meetingPath its path.
const meetingKind, meetingPath = "meeting", "/meeting"

// meet adds the double barrier. No worker contends for it.
func (p *plan) meet(*rand.Rand) {
	t := newTarget(meetingPath, meetingKind)
	t.permits = math.MaxInt
	p.targets = append(p.targets, t)
}

// A meeting is the double barrier, as the leader knows it.
type meeting struct {
	quiet sync.WaitGroup // until no client enters before the end

	// guarded by environment.mu
	members map[string]znode // by path
	readies []int64          // the transactions that created ready
}

// observe records a change. It needs environment.mu.
func (m *meeting) observe(env *environment, zxid int64, c zkserver.Change) {
	dir, name := zkpath.Split(c.Path)
	if dir != meetingPath || c.Kind != zkserver.Created && c.Kind != zkserver.Deleted {
		return
	}
	if m.members == nil {
		m.members = make(map[string]znode)
	}
	switch {
	case name == "ready" && c.Kind == zkserver.Created:
		m.readies = append(m.readies, zxid)
		m.checkReady(env)
		return
	case name == "ready":
		return
	case c.Kind == zkserver.Created:
		m.members[c.Path] = znode{c.Owner, zxid}
	default:
		delete(m.members, c.Path)
	}
}

// A meeter is what members meet by.
type meeter interface {
	Enter(ctx context.Context) (*lease.Lease, error)
	Leave(ctx context.Context, l *lease.Lease) error
}

// meeterOf returns the client's present double barrier; nil if the client is being closed.
func (k *gating) meeterOf(c *client) (*framework.Client, meeter) {
	f := c.usable()
	if f == nil {
		return nil, nil
	}
	d := made(barrier.NewDouble(f, k.env.bug.at(c, meetingPath), k.env.bug.number(c, len(k.env.clients))))
	return f, k.env.bug.meeter(f, d)
}

// meetAgain enters and leaves again and again, and once more at the end. Before some entries, it
// withdraws and comes again at once.
func (k *gating) meetAgain(c *client, r *rand.Rand) {
	timeout := k.env.plan.timeout
	var of *framework.Client
	var former []nodeKey // that were in when the client's last Leave failed
	for ; !closed(k.over); k.ended(upTo(r, timeout/4)) {
		f, d := k.meeterOf(c)
		if d == nil {
			continue
		}
		if f != of { // a client knows what it has done itself
			of, former = f, nil
		}
		if r.IntN(2) == 0 {
			k.withdraw(c, d, former, r)
		}
		former = k.meet(c, f, d, former, r)
	}
	k.meeting.quiet.Done()
	k.meeting.quiet.Wait()
	k.meetLast(c, r)
}

// withdraw enters with little time. Without it, what the member left behind is seldom met.
func (k *gating) withdraw(c *client, d meeter, former []nodeKey, r *rand.Rand) {
	var l *lease.Lease
	err := c.call("Enter", r, upTo(r, k.env.prompt()), func(ctx context.Context) (err error) {
		l, err = d.Enter(ctx)
		return err
	})
	if err != nil {
		k.env.count("members that withdrew", 1)
		return
	}
	k.checkFormer(c, former)
	k.checkEntered(c, l)
	_ = c.call("Release of a place", r, k.env.plan.timeout, l.Release)
}

// meet enters, stays for a while, and leaves. It returns the former members that the client still waits for.
func (k *gating) meet(c *client, f *framework.Client, d meeter, former []nodeKey, r *rand.Rand) []nodeKey {
	timeout := k.env.plan.timeout
	var l *lease.Lease
	if c.call("Enter", r, upTo(r, 4*timeout), func(ctx context.Context) (err error) {
		l, err = d.Enter(ctx)
		return err
	}) != nil {
		return former
	}
	k.checkFormer(c, former)
	m := &worker{env: k.env, c: c, name: c.name + "/member", r: r, f: f}
	t := k.env.enter(m, f, &handle{name: meetingKind + " " + meetingPath, target: k.env.target(meetingPath)}, l)
	defer t.cancel()
	k.checkEntered(c, l)
	k.ended(upTo(r, timeout/2))
	k.env.checkLoss(t)
	k.env.leave(t, m.name)
	if r.IntN(8) == 0 {
		_ = c.call("Release of a place", r, upTo(r, timeout), l.Release)
		k.env.count("members left by release", 1)
		return nil
	}
	inside := k.inside(l)
	if c.call("Leave", r, upTo(r, 4*timeout), func(ctx context.Context) error { return d.Leave(ctx, l) }) != nil {
		k.env.count("members whose Leave failed", 1)
		return slices.DeleteFunc(inside, func(member nodeKey) bool { return member.path == l.Node() })
	}
	k.checkLeft(c, inside)
	return nil
}
