package sim_test

import (
	"cmp"
	"context"
	crypto "crypto/rand"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/lease"
)

// The guarantees of barriers.
const (
	setHolds      guarantee = "a set barrier holds"
	removedPasses guarantee = "a removed barrier passes"
	allEnter      guarantee = "all enter together"
	allLeave      guarantee = "all leave together"
)

// lags reports whether a server may have been behind the leader since the moment.
func (k *gating) lags(since time.Duration) bool {
	return len(k.env.srv.Frontends()) > 1 && k.env.harmed(nil, since-k.env.settling())
}

// checkOpened is the validator of "a set barrier holds": it was not set at some moment since.
func (k *gating) checkOpened(c *client, since time.Duration) {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	last := k.opened[len(k.opened)-1]
	if last.to != 0 && last.to < since {
		k.env.violatedLocked(setHolds, "%s waits since %v and passes, and the barrier was set at %v", c.name, since, last.to)
	}
}

// setLast sets the barrier, and removes it while all clients wait.
func (k *gating) setLast() {
	ctx, cancel := context.WithTimeout(k.env.ctx, k.env.atEnd())
	defer cancel()
	_, err := k.env.operator.Create(ctx, gatePath, nil)
	if errors.Is(err, framework.ErrUnknownOutcome) { // a late handshake had made its connection void
		_, err = k.env.operator.Create(ctx, gatePath, nil)
	}
	close(k.closing)
	pass(k.env.plan.timeout)
	if err == nil || errors.Is(err, framework.ErrNodeExists) {
		err = k.env.operator.Delete(ctx, gatePath, framework.Idempotent()) // a client's last Remove may come late
	}
	if err != nil && k.env.ctx.Err() == nil {
		k.env.violated(liveness, "all is well, and the operator can't set and remove the barrier: %v", err)
	}
}

// waitLast is the validator of "a removed barrier passes", once all is well.
func (k *gating) waitLast(c *client) {
	ctx, cancel := context.WithTimeout(k.env.ctx, k.env.atEnd()+k.env.plan.timeout)
	defer cancel()
	if err := k.gateOf(c).Wait(ctx); err != nil && k.env.ctx.Err() == nil {
		k.env.violated(removedPasses, "all is well, and %s does not pass: %v", c.name, err)
		return
	}
	k.env.count("barrier at the end", 1)
}

// checkReady is the validator of "all enter together" for the creation of ready: there is a znode of each of as many
// clients as have to enter. It needs environment.mu.
func (m *meeting) checkReady(env *environment) {
	env.counts["meetings"]++
	clients := make(map[*record]bool) // a client that was closed and its successor are two
	for _, member := range m.members {
		clients[env.whose[member.owner]] = true
	}
	if len(clients) < len(env.clients) {
		env.violatedLocked(allEnter, "ready was created when there were members of %d clients, of %d, with %d znodes",
			len(clients), len(env.clients), len(m.members))
	}
}

// readyAfter returns the transaction that created the first ready after the member; 0 if none did. It
// needs environment.mu.
func (k *gating) readyAfter(l *lease.Lease) int64 {
	own := k.env.made[l.Node()].czxid
	i, _ := slices.BinarySearchFunc(k.meeting.readies, own, cmp.Compare[int64])
	if i == len(k.meeting.readies) {
		return 0
	}
	return k.meeting.readies[i]
}

// checkEntered is the validator of "all enter together" for a member: ready was created after it.
func (k *gating) checkEntered(c *client, l *lease.Lease) {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	if k.readyAfter(l) == 0 {
		k.env.violatedLocked(allEnter, "%s has entered by %s, and no ready was created since", c.name, l.Node())
	}
}

// checkFormer is the validator of "all enter together" for a member whose last Leave failed: those that it left are
// out when it is let in again.
func (k *gating) checkFormer(c *client, former []nodeKey) {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	for _, member := range former {
		if k.meeting.members[member.path].czxid == member.czxid {
			k.env.violatedLocked(allEnter, "%s has entered again, and %s of its former round is in", c.name, member.path)
		}
	}
}

// inside returns the znodes of the members that are in together with the member.
func (k *gating) inside(l *lease.Lease) []nodeKey {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	ready := k.readyAfter(l)
	var in []nodeKey
	for path, member := range k.meeting.members {
		if member.czxid < ready {
			in = append(in, nodeKey{path, member.czxid})
		}
	}
	return in
}

// checkLeft is the validator of "all leave together": the znodes of the members that were in are gone, and
// so is the client's own. Any of them would be counted in the next meeting.
func (k *gating) checkLeft(c *client, inside []nodeKey) {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	for _, member := range inside {
		if k.meeting.members[member.path].czxid == member.czxid {
			k.env.violatedLocked(allLeave, "%s has left, and %s is in", c.name, member.path)
		}
	}
}

// meetLast is the validator of "liveness" for the double barrier, once all is well.
func (k *gating) meetLast(c *client, r *rand.Rand) {
	pass(k.env.settling()) // znodes of members that withdrew are deleted
	ctx, cancel := context.WithTimeout(k.env.ctx, k.env.atEnd())
	defer cancel()
	_, d := k.meeterOf(c)
	l, err := d.Enter(ctx)
	if err == nil {
		pass(upTo(r, time.Second))
		err = d.Leave(ctx, l)
	}
	if err != nil && k.env.ctx.Err() == nil {
		k.env.violated(liveness, "all is well, and %s can't enter and leave: %v", c.name, err)
		return
	}
	k.env.count("meetings at the end", 1)
}

// barrierBugs are, for each guarantee of barriers, what its validator has to find.
func barrierBugs() []deliberate {
	alone := first(func(int) int { return 1 })
	return []deliberate{
		{setHolds, "a client does not wait at a barrier", "and passes", func(b *bug) {
			b.gate = func(g gate) gate { return openGate{g} }
		}},
		{removedPasses, "a client waits at a barrier that is removed", "does not pass", func(b *bug) {
			b.gate = func(g gate) gate { return closedGate{g} }
		}},
		{allEnter, "a client takes the double barrier to have one member", "members of 1 clients", func(b *bug) { b.number = alone }},
		{allEnter, "a client has two members in a double barrier", "members of 1 clients, of 2, with 2 znodes", func(b *bug) {
			b.meeter = func(f *framework.Client, d *barrier.Double) meeter { return double{d, f} }
		}},
		{allEnter, "a client enters at another path", "no ready was created since", func(b *bug) {
			astray(meetingPath)(b)
			b.number = alone
		}},
		{allLeave, "a member does not wait for the others to leave", "has left, and", func(b *bug) {
			b.meeter = func(_ *framework.Client, d *barrier.Double) meeter { return hasty{d} }
		}},
	}
}

// An openGate lets every client pass.
type openGate struct{ gate }

func (openGate) Wait(context.Context) error { return nil }

// A closedGate lets no client pass.
type closedGate struct{ gate }

func (closedGate) Wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A hasty member only releases its place.
type hasty struct{ *barrier.Double }

func (hasty) Leave(ctx context.Context, l *lease.Lease) error { return l.Release(ctx) }

// A double member has a znode that it has left behind, as if from a call that was withdrawn.
type double struct {
	*barrier.Double
	f *framework.Client
}

func (d double) Enter(ctx context.Context) (*lease.Lease, error) {
	former := zkpath.Join(meetingPath, crypto.Text())
	_, _ = d.f.Create(ctx, former, nil, framework.Ephemeral())
	defer d.f.Discard(former)
	return d.Double.Enter(ctx)
}
