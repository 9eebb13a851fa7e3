package sim_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/testing/zkserver"
)

// gatePath is a barrier that one client sets and removes, and at which all clients wait. All clients are members of a
// double barrier, too: see met_test.go.
const gatePath = "/gate"

func gated() *recipe {
	return &recipe{
		name: "barrier", oneIn: 15, plan: (*plan).meet, live: (*environment).gate, bugs: barrierBugs(),
		guarantees: []guarantee{setHolds, removedPasses, allEnter, allLeave},
		met: append(comeAgain(meetingKind),
			"barrier passed", "barrier held", "barrier at the end", "own barrier held", "Enter: ok", "Leave: ok", "Leave: lost",
			"members left by release", "members that withdrew", "members whose Leave failed", "meetings", "meetings at the end",
		),
	}
}

// A gating is the barrier and the double barrier of a schedule.
type gating struct {
	*task
	setting sync.WaitGroup

	closing chan struct{} // closed when the operator has set the barrier for the last time
	meeting meeting

	opened []span // guarded by environment.mu: when the barrier was not set, as the leader knows
}

// A span is a time, until to; 0 for now.
type span struct{ from, to time.Duration }

// gate has the clients wait for one another until end is called.
func (env *environment) gate() (end func()) {
	k := &gating{task: env.newTask(), closing: make(chan struct{}), opened: []span{{}}}
	k.meeting.quiet.Add(len(env.clients))
	env.tell(k.observe)
	k.each(21, k.waitAgain)
	k.each(22, k.meetAgain)
	first := env.clients[0]
	k.setting.Go(func() { k.setAgain(first, rand.New(rand.NewPCG(first.plan.seed, 23))) })
	return func() {
		close(k.over)
		k.setting.Wait()
		k.setLast()
		k.all.Wait()
	}
}

// observe records when the barrier is set, and who the members are.
func (k *gating) observe(x zkserver.Transaction) {
	for _, c := range x.Changes {
		last := &k.opened[len(k.opened)-1]
		switch {
		case c.Path != gatePath:
			k.meeting.observe(k.env, x.Zxid, c)
		case c.Kind == zkserver.Created:
			last.to = k.env.now()
		case c.Kind == zkserver.Deleted:
			k.opened = append(k.opened, span{from: k.env.now()})
		}
	}
}

// A gate is what the clients wait at.
type gate interface {
	Set(ctx context.Context) error
	Remove(ctx context.Context) error
	Wait(ctx context.Context) error
}

// gateOf returns the client's present barrier; nil if the client is being closed.
func (k *gating) gateOf(c *client) gate {
	f := c.usable()
	if f == nil {
		return nil
	}
	return k.env.bug.gate(gate(made(barrier.New(f, gatePath))))
}

// setAgain sets the barrier, waits at it, and removes it, again and again.
func (k *gating) setAgain(c *client, r *rand.Rand) {
	timeout := k.env.plan.timeout
	for ; !closed(k.over); k.ended(upTo(r, timeout/2)) {
		b := k.gateOf(c)
		if b == nil {
			continue
		}
		if c.call("Set of a barrier", r, upTo(r, timeout), b.Set) != nil {
			continue
		}
		k.waitOwn(c, b, r)
		k.ended(upTo(r, timeout))
		_ = c.call("Remove", r, upTo(r, timeout), b.Remove) // the next Set finds it set, or not
	}
}

// waitOwn is the validator of "a set barrier holds" for the client that has set it: every server that
// the client then reads from has the barrier.
func (k *gating) waitOwn(c *client, b gate, r *rand.Rand) {
	since := k.env.now()
	err := c.call("Wait", r, upTo(r, k.env.plan.timeout/2), b.Wait)
	if err == nil {
		k.checkOpened(c, since)
		return
	}
	k.env.count("own barrier held", 1)
}

// waitAgain waits at the barrier again and again, and once more at the end.
func (k *gating) waitAgain(c *client, r *rand.Rand) {
	for ; !closed(k.over); k.ended(upTo(r, k.env.plan.timeout/8)) {
		b := k.gateOf(c)
		if b == nil {
			continue
		}
		since := k.env.now()
		switch err := c.call("Wait", r, upTo(r, 3*k.env.plan.timeout), b.Wait); {
		case err == nil && !k.lags(since):
			k.env.count("barrier passed", 1)
			k.checkOpened(c, since)
		case errors.Is(err, context.DeadlineExceeded):
			k.env.count("barrier held", 1)
		}
	}
	<-k.closing
	k.waitLast(c)
}
