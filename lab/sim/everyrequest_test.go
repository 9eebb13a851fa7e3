package sim_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// A mishap is the fault of one request of an acquire and release.
type mishap struct {
	kind      string
	action    fault.Action
	number    int  // of the request, among those from the first on
	contended bool // another client has the lock at first
	ends      bool // the context ends with the mishap
	frontends int
	again     bool // its client has had the lock before, and knows the directory
}

func (m mishap) String() string {
	return fmt.Sprintf("%s, %v of request %d, contended %v, context ends %v, %d front ends, again %v",
		m.kind, m.action, m.number, m.contended, m.ends, m.frontends, m.again)
}

// TestEveryRequest runs each kind of lock with each fault at each request of an acquire and
// release, with and without an end of the context. All validators watch. A plain go test takes a
// sample. If the simulation has many schedules, all requests have their fault.
func TestEveryRequest(t *testing.T) {
	if os.Getenv(partEnv) != "" {
		t.Skip("a part of another run")
	}
	if os.Getenv("SIM_SEED") != "" {
		t.Skip("one schedule is replayed")
	}
	var parts []part
	for _, kind := range []string{"multi", "downgrade", "semaphore", "write", "read", "mutex", "exclusive"} { // the longest first
		parts = append(parts, part{Kinds: []string{kind}})
	}
	total := runParts(t, parts)
	t.Logf("%d requests were met", total[requestsKey])
}

// meetAll has every request of the kinds of locks be met, and returns how many there were.
func meetAll(t *testing.T, kinds []string) int {
	t.Helper()
	actions := []fault.Action{fault.CutBefore, fault.DropReply, fault.HoldRequest, fault.HoldReply, fault.DelayRequest, fault.DelayReply}
	contended, frontends := []bool{false, true}, []int{1, 3}
	if setting(t, "SIM_SCHEDULES", few) < many {
		actions, contended, frontends = actions[1:2], contended[:1], frontends[:1]
	}
	total := 0
	for _, kind := range kinds {
		for _, action := range actions {
			for _, contended := range contended {
				for _, ends := range []bool{false, true} {
					for _, frontends := range frontends {
						for _, again := range []bool{false, true} {
							total += meetEach(t, mishap{kind, action, 0, contended, ends, frontends, again})
						}
					}
				}
			}
		}
	}
	return total
}

// meetEach has the mishap meet one request after the other, until there is none.
func meetEach(t *testing.T, m mishap) int {
	t.Helper()
	const most = 60 // far above what an acquire and release take
	for ; m.number < most; m.number++ {
		env, hit := meet(t, m)
		fmt.Printf("%s%v\n", saysSeed, m)
		if err := env.err(); err != nil {
			t.Fatalf("%v: %v\n\n%s", m, err, tail(env.trace()))
		}
		if !hit {
			break
		}
	}
	if m.number < 2 || m.number == most {
		t.Errorf("%v: met %d requests, want from 2 to %d", m, m.number, most-1)
	}
	return m.number
}

// meet runs one acquire and release with the mishap, and reports whether there was such a request.
func meet(t *testing.T, m mishap) (env *environment, hit bool) {
	t.Helper()
	env = newEnvironment(m.plan(), bug{})
	env.script = func() { hit = env.meet(m) }
	return simulate(t, env), hit
}

// plan has two clients with a worker each.
func (m mishap) plan() *plan {
	p := &plan{
		version: zkserver.DefaultVersion, timeout: 10 * time.Second, latency: 200 * time.Microsecond, frontends: m.frontends, leader: -1,
	}
	k := workerPlan{seed: 1}
	for _, target := range targetKinds {
		if target.path == "/sim/mutex" || m.kind == "multi" || target.kind == m.kind || target.kind == "rw" {
			p.targets = append(p.targets, newTarget(target.path, target.kind))
		}
	}
	switch m.kind {
	case "multi":
		for _, target := range p.targets {
			k.multi = append(k.multi, target.path)
		}
		k.kinds = []string{"multi"}
	case "read", "write":
		k.kinds = []string{m.kind + " /sim/rw"}
	case "downgrade":
		k.kinds = []string{"write /sim/rw"}
	default:
		k.kinds = []string{m.kind + " /sim/" + m.kind}
	}
	for seed := range uint64(2) {
		p.clients = append(p.clients, clientPlan{seed: seed, workers: []workerPlan{k}})
	}
	return p
}

func (env *environment) meet(m mishap) bool {
	k, other := env.workers[0], env.workers[1]
	for _, k := range env.workers {
		k.refresh()
		if err := k.f.AwaitConnected(env.ctx); err != nil {
			env.violated(liveness, "%s does not connect: %v", k.name, err)
			return false
		}
	}
	if m.again && !env.warm(k) {
		return false
	}
	var theirs *leaseRecord
	if m.contended {
		l, err := other.handles[0].locker.Lock(env.ctx)
		if err != nil {
			env.violated(liveness, "the lock is free and can't be had: %v", err)
			return false
		}
		theirs = env.enter(other, other.f, other.handles[0], l)
	}
	rule := fault.Rule{Session: k.f.Session().ID, Action: m.action, Skip: m.number}
	if m.action == fault.DelayRequest || m.action == fault.DelayReply {
		rule.Delay = time.Second
	}
	h := env.srv.Rules().Add(rule)
	done := make(chan struct{})
	go func() { // ends with the calls, whose context ends at the latest
		defer close(done)
		k.lockAndRelease(m, h)
	}()
	if theirs != nil {
		pass(time.Second)
		env.leave(theirs, other.name)
		if err := theirs.lease.Release(env.ctx); err != nil {
			env.violated(liveness, "the release: %v", err)
		}
	}
	select {
	case <-done:
	case <-time.After(2 * env.plan.timeout): // what is held, is held for so long
		h.Release()
		<-done
	}
	env.heal()
	return h.Hits() > 0
}

// usesToKnow is how often a client has a lock before it knows the directory.
const usesToKnow = 4

// warm has the worker have its lock a few times, undisturbed.
func (env *environment) warm(k *worker) bool {
	for range usesToKnow {
		l, err := k.handles[0].locker.Lock(env.ctx)
		if err == nil {
			err = l.Release(env.ctx)
		}
		if err != nil {
			env.violated(liveness, "the lock is free and can't be had: %v", err)
			return false
		}
	}
	return true
}

// lockAndRelease is what the mishap meets.
func (k *worker) lockAndRelease(m mishap, h *fault.Handle) {
	c := call{began: time.Now(), ends: time.Now().Add(10 * time.Minute)}
	ctx, cancel := context.WithDeadline(k.env.ctx, c.ends)
	defer cancel()
	c.ctx = ctx
	if m.ends {
		stopped := make(chan struct{})
		defer func() { <-stopped }()
		defer cancel()
		go func() { // ends with the hit, or the context
			defer close(stopped)
			select {
			case <-h.Hit():
				k.env.mu.Lock()
				c.ends = time.Now()
				k.env.mu.Unlock()
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	judge := func(op string, err error) {
		k.env.mu.Lock()
		now := c
		k.env.mu.Unlock()
		k.checkResult(op, now, err)
	}
	use := k.handles[0]
	for _, l := range k.lockers(m, use) {
		k.do("Lock")
		c.began = time.Now()
		lease, err := l.Lock(ctx)
		judge("Lock", err)
		if err != nil {
			break
		}
		k.held = append(k.held, k.env.enter(k, k.f, use, lease))
		pass(100 * time.Millisecond) // until the znode is watched
	}
	for _, t := range k.held {
		k.env.leave(t, k.name)
		k.do("Release")
		c.began = time.Now()
		judge("Release", t.lease.Release(ctx))
		t.cancel()
	}
	k.held = nil
}

// lockers returns what is locked, one after the other, and released in the same order.
func (k *worker) lockers(m mishap, h *handle) []lock.Locker {
	if m.kind == "downgrade" {
		return []lock.Locker{h.locker, h.downgrade}
	}
	return []lock.Locker{h.locker}
}
