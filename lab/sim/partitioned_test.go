package sim_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/partition"
)

// A partition's keys are targets like locks: the server of a key holds a lease, so the validators of
// loss before succession and of all others apply. Each client is a member, and no worker contends.

// The guarantees of partitions, in addition to those of locks.
const (
	oneServer   guarantee = "one server per key" // exclusion of keys
	everyKey    guarantee = "every key is served"
	equalShares guarantee = "equal shares"
)

// partitionKind is the kind of the keys.
const partitionKind = "partition"

// partitionRoot is the path of the partition, and keysDir that of its keys.
const partitionRoot, keysDir = "/partitioned", "/partitioned/keys/"

// partitionMembers is where the members have their znodes.
const partitionMembers = partitionRoot + "/members"

// partitionKeys are the keys: more than there are members.
var partitionKeys = []string{"a", "b", "c", "d"}

func partitioned() *recipe {
	return &recipe{
		name: partitionKind, oneIn: 15, plan: (*plan).divide, live: (*environment).divide, bugs: partitionBugs(),
		guarantees: []guarantee{oneServer, everyKey, equalShares},
		met:        append(comeAgain("member"), "grants partition", "keys moved", "keys lost", "members left", "shares at the end"),
	}
}

// divide adds the keys.
func (p *plan) divide(r *rand.Rand) {
	p.takePaths(r)
	for _, key := range partitionKeys {
		p.targets = append(p.targets, newTarget(keysDir+key, partitionKind))
	}
}

// contended returns the locks that workers contend for.
func (p *plan) contended() []*target {
	return slices.DeleteFunc(slices.Clone(p.targets), func(t *target) bool {
		return t.kind == partitionKind || t.kind == scheduleKind || t.permits > 0
	})
}

// A partitioning is the keys that the clients divide among themselves.
type partitioning struct {
	*task
	done chan struct{} // closed when the shares have been checked
}

// divide has each client serve keys until end is called.
func (env *environment) divide() (end func()) {
	k := &partitioning{task: env.newTask(), done: make(chan struct{})}
	k.each(14, k.live)
	return func() {
		close(k.over)
		k.checkShares()
		close(k.done)
		k.all.Wait()
	}
}

// live is a member again and again.
func (k *partitioning) live(c *client, r *rand.Rand) {
	for !closed(k.done) {
		if c.usable() == nil {
			pass(time.Second)
			continue
		}
		k.member(c, r)
		if !closed(k.over) && r.IntN(2) == 0 { // else it comes again at once
			pass(upTo(r, k.env.plan.timeout/2))
		}
	}
}

// A member is one Run of a client's partition.
type member struct {
	*worker // as which it holds leases

	mu sync.Mutex // guards worker.r
}

// member serves keys for a while, or until the shares have been checked.
func (k *partitioning) member(c *client, r *rand.Rand) {
	f := c.current()
	m := &member{worker: &worker{env: k.env, c: c, name: c.name + "/keys", r: r, f: f}}
	opts := []partition.Option{partition.WithID(c.name), recipes.WithSettle(upTo(r, time.Second))}
	if c.plan.onLoss {
		opts = append(opts, recipes.WithLossPolicy(lease.OnSuspend))
	}
	p, err := partition.New(f, k.env.bug.at(c, partitionRoot), partitionKeys, opts...)
	if err != nil {
		k.env.violated(nothingHidden, "a new Partition: %v", err)
		return
	}
	ctx, cancel := context.WithCancel(k.env.ctx)
	defer cancel()
	life := time.After(upTo(r, 4*k.env.plan.timeout))
	ran := make(chan error, 1)
	k.all.Go(func() { ran <- p.Run(ctx, m.serve) })
	select {
	case err = <-ran:
	case <-k.over:
		select {
		case err = <-ran:
		case <-k.done:
			err = m.leave(cancel, ran)
		}
	case <-life:
		err = m.leave(cancel, ran)
		k.env.count("members left", 1)
	}
	k.env.report(m.name, "Run has returned", err)
	k.env.inspect(err)
	if k.env.ctx.Err() == nil && !errors.Is(err, framework.ErrClosed) && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
		k.env.violated(nothingHidden, "Run of %s returned what no documentation names: %v", m.name, err)
	}
}

// leaveLimit is how long a Run waits for the ensemble when it has ended.
const leaveLimit = 10 * time.Second

// leave is the validator of "bounded calls" for Run.
func (m *member) leave(cancel context.CancelFunc, ran <-chan error) error {
	began := time.Now()
	cancel()
	err := <-ran
	if took := time.Since(began); took > m.linger()+leaveLimit+promptly && m.env.ctx.Err() == nil {
		m.env.violated(boundedCalls, "Run of %s returned %v after its context had ended: %v", m.name, took, err)
	}
	return err
}

// linger is for how long a key is served at most when its context has ended.
func (m *member) linger() time.Duration { return m.env.plan.timeout / 4 }

// draw returns how long a key is served at most, and for how long after the end of its context.
func (m *member) draw() (span, linger time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.r.IntN(2) == 0 {
		linger = upTo(m.r, m.linger())
	}
	return upTo(m.r, 4*m.env.plan.timeout), linger
}

// serve serves a key.
func (m *member) serve(ctx context.Context, key string, l *lease.Lease) error {
	at := m.env.target(keysDir + key)
	t := m.env.enter(m.worker, m.f, &handle{name: partitionKind + " " + at.path, target: at}, l)
	span, linger := m.draw()
	select {
	case <-time.After(span):
	case <-ctx.Done():
		m.ended(context.Cause(ctx))
		pass(linger)
	}
	m.env.checkLoss(t)
	m.env.leave(t, m.name)
	t.cancel()
	return nil
}

// ended counts why a key is not served any more.
func (m *member) ended(cause error) {
	var lost *lease.LostError
	switch {
	case errors.Is(cause, partition.ErrMoved):
		m.env.count("keys moved", 1)
	case errors.As(cause, &lost):
		m.env.count("keys lost", 1)
	}
}

// checkShares is the validator of "every key is served" and of "equal shares", once all is well. A
// server may have returned early: its key is served again a second later.
func (k *partitioning) checkShares() {
	k.env.eventually("shares at the end", func() (guarantee, string) {
		servers, least, most := k.shares()
		switch {
		case len(servers) < len(partitionKeys):
			return everyKey, fmt.Sprintf("only %d keys are served: %v", len(servers), servers)
		case most-least > 1:
			return equalShares, fmt.Sprintf("members serve from %d to %d keys: %v", least, most, servers)
		}
		return "", ""
	})
}

// shares returns who serves each key, and how many keys members serve at least and at most.
func (k *partitioning) shares() (servers map[string]string, least, most int) {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	servers = make(map[string]string)
	for _, t := range k.env.plan.targets {
		for _, s := range t.stakes {
			if t.kind == partitionKind && !k.env.over(s) {
				servers[t.path] = s.record.client.name
			}
		}
	}
	counts := make(map[string]int)
	for _, c := range k.env.clients {
		counts[c.name] = 0
	}
	for _, name := range servers {
		counts[name]++
	}
	all := slices.Collect(maps.Values(counts))
	return servers, slices.Min(all), slices.Max(all)
}

// partitionBugs are, for each guarantee of partitions, what its validator has to find.
func partitionBugs() []deliberate {
	return []deliberate{
		{oneServer, "one of the members divides the keys at another path", "has it with", astray(partitionRoot)},
		{everyKey, "a contender for a key never leaves the queue", "only 3 keys", func(b *bug) {
			b.plan, b.harm = calm, func(env *environment) {
				made(made(lock.NewMutex(env.operator, keysDir+partitionKeys[0])).Lock(env.ctx)) // and keeps it
			}
		}},
		{equalShares, "a connection loses every event of the members", "members serve from", unheard(partitionRoot+"/members", 1)},
	}
}
