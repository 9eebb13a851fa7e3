package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/schedule"
)

// Each client is a host of a job that is due at a slot. Their clocks are apart by up to half the time between two
// slots. Who works holds a lease of a target, so the validators of locks apply, too.

// scheduleKind is the kind of the target, scheduleRoot the path of the job, and scheduleTarget that of its lock.
const scheduleKind, scheduleRoot, scheduleTarget = "schedule", "/scheduled", "/scheduled/lock"

// errJob is an error of a job.
var errJob = errors.New("the job has failed")

func scheduled() *recipe {
	return &recipe{
		name: scheduleKind, oneIn: 15, plan: (*plan).schedule, live: (*environment).schedule, bugs: scheduleBugs(),
		guarantees: []guarantee{oneRun, endsOnce, trueMarks, noneMissed},
		met: append(comeAgain(scheduleKind), "slots", "slots at the end", "runs of a millisecond", "runs longer than a slot",
			"runs stopped", "runs repeated", "Run: ok", "Run: failed", "Run: passed", "Run: unmarked", "Run: lost", "Run: waited",
			"slots Ran", "slots DoneElsewhere", "slots RunningElsewhere", "slots Missed", "slots LostInTheMiddle"),
	}
}

func (p *plan) schedule(*rand.Rand) {
	p.targets = append(p.targets, newTarget(scheduleTarget, scheduleKind))
}

// A scheduling is the job of a schedule.
type scheduling struct {
	*task
	period time.Duration // between two slots
	rerun  bool          // what is lost in the middle runs again

	// guarded by environment.mu
	slots map[time.Time]*slotRecord
	marks []schedule.Run // as the leader has them
}

// A slotRecord is what became of a slot.
type slotRecord struct {
	begun    int              // functions
	returned int              // functions that came to their end
	recorded map[int64]string // the ends that the leader has, by fence
}

// of returns the record of a slot. It needs env.mu.
func (k *scheduling) of(slot time.Time) *slotRecord {
	if k.slots[slot] == nil {
		k.slots[slot] = &slotRecord{recorded: map[int64]string{}}
	}
	return k.slots[slot]
}

// schedule has each client run the job until end is called, and once more then.
func (env *environment) schedule() (end func()) {
	r := rand.New(rand.NewPCG(uint64(env.plan.horizon), 28))
	k := &scheduling{
		task: env.newTask(), rerun: r.IntN(2) == 0, slots: map[time.Time]*slotRecord{},
		period: max(time.Second, (env.plan.timeout / 4).Truncate(time.Second)),
	}
	env.tell(k.observe)
	k.each(28, func(c *client, r *rand.Rand) {
		h := &scheduleHost{scheduling: k, c: c, r: r, behind: upTo(r, k.period/2)}
		h.live()
	})
	return func() {
		k.end()
		k.last()
	}
}

// at returns the nth slot.
func (k *scheduling) at(n int) time.Time {
	return k.env.began.Truncate(time.Second).Add(time.Duration(n+1) * k.period).UTC()
}

// A scheduleHost is a client that runs the job.
type scheduleHost struct {
	*scheduling
	c      *client
	behind time.Duration // the clock, and the timer

	mu sync.Mutex // guards following
	r  *rand.Rand
}

// upTo returns a duration below limit.
func (h *scheduleHost) upTo(limit time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return upTo(h.r, limit)
}

// live has the client call Run for each slot, by its clock: in a goroutine each, or one after another, without those
// that have passed meanwhile.
func (h *scheduleHost) live() {
	serial := h.upTo(2) == 0
	for n := 0; ; n++ {
		for serial && time.Since(h.at(n+1)) >= h.behind {
			n++
		}
		if h.ended(time.Until(h.at(n).Add(h.behind))) {
			return
		}
		f := h.c.usable()
		switch {
		case f == nil:
		case serial:
			h.call(f, h.at(n), h.draw())
		default:
			d := h.draw()
			h.all.Go(func() { h.call(f, h.at(n), d) })
		}
	}
}

// A drawn is what one call is like.
type drawn struct {
	wait, takes, ends time.Duration // of WithWait; of the function; until the end of the context
	fails             bool
}

func (h *scheduleHost) draw() drawn {
	timeout := h.env.plan.timeout
	d := drawn{wait: []time.Duration{timeout / 2, 2 * timeout, 6 * timeout}[h.upTo(3)], ends: time.Hour, fails: h.upTo(8) == 0}
	d.takes = []time.Duration{time.Millisecond, h.upTo(h.period/2) + 1, h.upTo(2*h.period) + 1}[h.upTo(3)]
	if h.upTo(8) == 0 {
		d.ends = h.upTo(2*timeout) + 1
	}
	switch {
	case d.takes == time.Millisecond:
		h.env.count("runs of a millisecond", 1)
	case d.takes > h.period:
		h.env.count("runs longer than a slot", 1)
	}
	return d
}

// call runs the job for a slot.
func (h *scheduleHost) call(f *framework.Client, slot time.Time, d drawn) schedule.Result {
	opts := []schedule.Option{schedule.WithWait(d.wait), schedule.WithHistory(30)}
	if h.rerun {
		opts = append(opts, schedule.WithRerun())
	}
	if h.c.plan.onLoss {
		opts = append(opts, recipes.WithLossPolicy(lease.OnSuspend))
	}
	s := made(schedule.New(f, h.env.bug.at(h.c, scheduleRoot), opts...))
	ctx, cancel := context.WithTimeout(h.env.ctx, d.ends)
	defer cancel()
	c := &scheduleCall{scheduleHost: h, ctx: ctx, slot: slot, drawn: d, began: h.env.now()}
	got, err := s.Run(ctx, slot, func(ctx context.Context, l *lease.Lease) error { return c.job(ctx, f, l) })
	c.returned(got, err)
	return got
}

// A scheduleCall is one call of Run.
type scheduleCall struct {
	*scheduleHost
	drawn
	ctx   context.Context
	slot  time.Time
	began time.Duration

	ran   bool // the function has been called
	ended time.Duration
}

// job is the function.
func (c *scheduleCall) job(ctx context.Context, f *framework.Client, l *lease.Lease) error {
	c.begins(l)
	target := &handle{name: scheduleKind + " " + scheduleTarget, target: c.env.target(scheduleTarget)}
	t := c.env.enter(&worker{env: c.env, c: c.c, name: fmt.Sprint(c.c.name, "/job")}, f, target, l)
	defer t.cancel()
	stopped := false
	select {
	case <-time.After(c.takes):
	case <-ctx.Done():
		stopped = true
		c.env.count("runs stopped", 1)
	}
	c.env.checkLoss(t)
	c.env.leave(t, c.c.name)
	c.ended = c.env.now()
	switch {
	case stopped:
		return context.Cause(ctx)
	case c.fails:
		c.comesToItsEnd()
		return errJob
	}
	c.comesToItsEnd()
	return nil
}

// last has all hosts call Run at the same time when all is well: one of them runs the slot.
func (k *scheduling) last() {
	pass(k.env.settling())
	if k.env.ctx.Err() != nil {
		return
	}
	slot := k.at(int(k.env.now()/k.period) + 1)
	outcomes := make([]schedule.Outcome, len(k.env.clients))
	var all sync.WaitGroup
	for i, c := range k.env.clients {
		all.Go(func() {
			h := &scheduleHost{scheduling: k, c: c, r: rand.New(rand.NewPCG(c.plan.seed, 29))}
			outcomes[i] = h.call(c.current(), slot, drawn{wait: time.Minute, takes: time.Second, ends: time.Hour}).Outcome
		})
	}
	all.Wait()
	if !slices.Contains(outcomes, schedule.Ran) || slices.Contains(outcomes, schedule.Missed) {
		k.env.violated(noneMissed, "all is well, and of a slot the hosts say %v", outcomes)
	}
	k.env.count("slots at the end", 1)
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	k.env.counts["slots"] += len(k.slots)
}
