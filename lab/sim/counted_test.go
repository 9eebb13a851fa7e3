package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/testing/zkserver"
)

// The clients add to counters. Each addition has a digit of a counter for itself: so every number shows
// how often each addition was applied. All clients also replace one value.
const countersRoot, valuePath = "/counted", "/valued"

func counted() *recipe {
	return &recipe{
		name: "counter", oneIn: 15, live: (*environment).counting, bugs: counterBugs(),
		guarantees: []guarantee{appliedOnce, oneOrder, latestValue},
		met: []string{
			"Add: ok", "Add: unknown outcome", "CompareAndSet: ok", "additions applied", "additions of unknown outcome",
			"additions combined", "values replaced", "values shown", "values at the end",
		},
	}
}

// A counting is the counters and the value of a schedule.
type counting struct {
	*task
	shows sync.WaitGroup // those that follow the value

	// guarded by environment.mu
	writes       map[string][]written // by path
	additions    []*addition
	replacements []*replacement
	shown        map[*client]int // how many writes of the value came before what the client was shown last
}

// A written is the data of a znode from one moment on, as the leader knows.
type written struct {
	at   time.Duration
	data string
}

// counting has each client count until end is called.
func (env *environment) counting() (end func()) {
	k := &counting{task: env.newTask(), writes: map[string][]written{}, shown: map[*client]int{}}
	env.tell(k.observe)
	ctx, cancel := context.WithCancel(env.ctx)
	for i, act := range []func(*client, *framework.Client, *rand.Rand){k.add, k.add, k.add, k.replace} {
		k.each(uint64(17+i), func(c *client, r *rand.Rand) { k.again(c, r, act) })
	}
	for _, c := range env.clients {
		k.shows.Go(func() { k.follow(ctx, c) })
	}
	return func() {
		k.end()
		pass(env.settling()) // a request may be under way
		k.checkAdditions()
		k.checkReplacements()
		k.checkLatest()
		cancel()
		k.shows.Wait()
	}
}

// observe records what is written.
func (k *counting) observe(x zkserver.Transaction) {
	for _, c := range x.Changes {
		counts := c.Path == valuePath || strings.HasPrefix(c.Path, countersRoot+"/")
		if counts && (c.Kind == zkserver.Created || c.Kind == zkserver.DataSet) {
			k.writes[c.Path] = append(k.writes[c.Path], written{k.env.now(), string(c.Data)})
		}
	}
}

// again acts with the client's present framework.Client until all is over.
func (k *counting) again(c *client, r *rand.Rand, act func(*client, *framework.Client, *rand.Rand)) {
	for !closed(k.over) {
		if f := c.usable(); f != nil {
			act(c, f, r)
		}
		rest := upTo(r, k.env.plan.timeout/2)
		if r.IntN(3) == 0 {
			rest = upTo(r, 5*time.Millisecond)
		}
		k.ended(rest)
	}
}

// An addition is one change of a counter.
type addition struct {
	path            string
	digit           int // of the counter, in the system of base 4
	began, returned time.Duration
	result          int64 // the number after it, if it was applied
	outcome         outcome
}

// An outcome is what a client knows of a change.
type outcome string

const (
	applied outcome = "applied"
	unknown outcome = "of unknown outcome"
	refused outcome = "refused"
)

func outcomeFrom(err error) outcome {
	switch {
	case err == nil:
		return applied
	case errors.Is(err, framework.ErrUnknownOutcome):
		return unknown
	}
	return refused
}

// digits is how many additions are to one counter.
const digits = 30

func (a *addition) delta() int64 { return 1 << (2 * a.digit) }

// times returns how often the addition is in a number.
func (a *addition) times(number int64) int { return int(number >> (2 * a.digit) & 3) }

// An adder is what the clients count by.
type adder interface {
	Get(ctx context.Context) (int64, error)
	Add(ctx context.Context, delta int64) (int64, error)
	CompareAndSet(ctx context.Context, old, v int64) (bool, error)
}

// add makes an addition, by Add or by CompareAndSet.
func (k *counting) add(c *client, f *framework.Client, r *rand.Rand) {
	k.env.mu.Lock()
	n := len(k.additions)
	a := &addition{path: fmt.Sprintf("%s/%d", countersRoot, n/digits), digit: n % digits, began: k.env.now()}
	k.additions = append(k.additions, a)
	k.env.mu.Unlock()
	by := k.env.bug.adder(adder(made(counter.New(f, k.env.bug.at(c, a.path)))))
	limit := upTo(r, k.env.plan.timeout)
	if r.IntN(3) > 0 {
		err := c.call("Add", r, limit, func(ctx context.Context) (err error) {
			a.result, err = by.Add(ctx, a.delta())
			return err
		})
		a.outcome = outcomeFrom(err)
	} else {
		a.outcome = k.swap(c, a, by, r, limit)
	}
	a.returned = k.env.now()
	k.env.report(c.name, fmt.Sprintf("an addition is %s: digit %d of", a.outcome, a.digit), a.path)
}

// swap makes an addition to the number that Get returns.
func (k *counting) swap(c *client, a *addition, by adder, r *rand.Rand, limit time.Duration) outcome {
	var old int64
	if c.call("Get", r, limit, func(ctx context.Context) (err error) {
		old, err = by.Get(ctx)
		return err
	}) != nil {
		return refused
	}
	swapped := false
	a.began, a.result = k.env.now(), old+a.delta()
	err := c.call("CompareAndSet", r, limit, func(ctx context.Context) (err error) {
		swapped, err = by.CompareAndSet(ctx, old, a.result)
		return err
	})
	if err == nil && !swapped {
		return refused
	}
	return outcomeFrom(err)
}
