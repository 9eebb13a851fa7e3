package sim_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/zkserver"
)

// The guarantees of semaphores, in addition to those of locks.
const (
	atMostN       guarantee = "at most n permits" // exclusion of semaphores
	allAtOnce     guarantee = "all permits at once"
	permitsReturn guarantee = "permits return"
)

// permitsMade records that one transaction created a permit's znode. It is the validator of "order" for
// semaphores of several permits: the session of the first contender in the queue has created it. A single
// permit may be created out of turn: see checkTurn. It needs env.mu.
func (env *environment) permitsMade(x zkserver.Transaction, c zkserver.Change) {
	dir, _ := zkpath.Split(c.Path)
	i := slices.IndexFunc(env.plan.targets, func(t *target) bool {
		return (t.permits > 0 || t.kind == "semaphore") && dir == t.path+"/leases"
	})
	if i < 0 {
		return
	}
	t := env.plan.targets[i]
	own := nodeKey{c.Path, x.Zxid}
	t.made[x.Zxid] = append(t.made[x.Zxid], own)
	queue := t.path + "/locks"
	first := ""
	for _, path := range env.inDir[queue] {
		_, number, _ := ranks(path)
		if _, least, _ := ranks(first); first == "" || number < least {
			first = path
		}
	}
	if t.permits > 0 {
		env.counts["turns checked"]++
	}
	if env.nodes[first].owner == c.Owner || env.doomedIn(queue) {
		return
	}
	switch {
	case t.permits > 0:
		env.violatedLocked(grantOrder, "session %v has created %s out of turn, and %q is the first in the queue", hex(c.Owner), c.Path, first)
	case first != "":
		t.ahead[own] = nodeKey{first, env.nodes[first].czxid}
		env.counts["single permits made out of turn"]++
	default:
		env.counts["single permits made without a turn"]++
	}
}

// checkTurn is the validator of "order" for a single permit. If it was created out of turn, the first in the
// queue of that moment is gone by the time of the grant. It needs env.mu.
func (env *environment) checkTurn(s *lockRecord) {
	first, outOfTurn := s.target.ahead[s.node]
	dir, _ := zkpath.Split(first.path)
	if outOfTurn && env.nodes[first.path].czxid == first.czxid && !env.doomedIn(dir) {
		env.violatedLocked(grantOrder, "%s is granted to %s out of turn while %s stands ahead", s.target.path, s.node.path, first.path)
	}
}

// doomedIn reports whether the operator has deleted a znode of the directory. It needs env.mu.
func (env *environment) doomedIn(dir string) bool {
	for key := range env.doomed {
		if at, _ := zkpath.Split(key.path); at == dir {
			return true
		}
	}
	return false
}

// nodesOf returns the znodes that a lease is held by. It needs env.mu.
func (env *environment) nodesOf(t *target, l *lock.Lease) []nodeKey {
	own := env.identify(l)
	if t.kind != permitsKind {
		return []nodeKey{own}
	}
	return t.made[own.czxid]
}

// checkPermits is the validator of "all permits at once": one transaction has created the znodes of
// all permits that the lease is of. It needs env.mu.
func (env *environment) checkPermits(t *leaseRecord) {
	h := t.handle
	if h.permits == 0 {
		return
	}
	h.target.freed = env.now() // from now on fewer are free
	env.counts[fmt.Sprint("grants of ", h.permits)]++
	if len(t.stakes) != h.permits {
		env.violatedLocked(allAtOnce, "%s is granted with %d permits, and one transaction created %d znodes", t, h.permits, len(t.stakes))
	}
}

// checkNumber is the validator of "at most n permits". It needs env.mu.
func (env *environment) checkNumber(t *target) {
	if t.kind != permitsKind {
		return
	}
	parties := make(map[string]int)
	held := 0
	for _, s := range t.stakes {
		if !env.over(s) && !env.excused(s) {
			parties[s.party]++
			held++
		}
	}
	if len(parties) > 1 {
		env.counts["permits shared"]++
	}
	if held > t.permits {
		env.violatedLocked(atMostN, "%d of %d permits of %s are held: %v", held, t.permits, t.path, parties)
	}
}

// hasRoom reports whether there are permits for any contender that waits. It needs env.mu.
func (env *environment) hasRoom(t *target) bool {
	needed := 0
	for _, k := range env.workers {
		if k.waiting != nil && k.waiting.of(t) {
			needed = max(needed, k.waiting.permits)
		}
	}
	for _, s := range t.stakes {
		if !env.over(s) {
			needed++
		}
	}
	return needed <= t.permits
}

// checkReturned is the validator of "permits return", once all is well and the workers have ended: one
// client can acquire all permits.
func (env *environment) checkReturned() {
	ctx, cancel := context.WithTimeout(env.ctx, env.atEnd())
	defer cancel()
	s := made(semaphore.New(env.operator, permitsPath, semaphorePermits))
	l, err := s.Acquire(ctx, semaphorePermits)
	if err == nil {
		env.count("all permits at the end", 1)
		err = l.Release(ctx)
	}
	if err != nil && env.ctx.Err() == nil {
		env.violated(permitsReturn, "all is well, and a client can't acquire and release all permits: %v", err)
	}
}

// permitBugs are, for each guarantee of semaphores, what its validator has to find.
func permitBugs() []deliberate {
	return []deliberate{
		{atMostN, "a client takes the semaphore to have twice the permits", "of 3 permits", func(b *bug) { b.number = first(func(n int) int { return 2 * n }) }},
		{allAtOnce, "a client acquires one permit in the place of several", "one transaction created 1 znodes", func(b *bug) { b.locker = modest }},
		{permitsReturn, "a permit's znode remains", "can't acquire and release all", func(b *bug) { b.harm = leavePermit }},
		{grantOrder, "a client creates a permit's znode without a place in the queue", "out of turn", func(b *bug) { b.harm = jumpQueue }},
	}
}

func modest(_ *worker, _ *framework.Client, h *handle) lock.Locker {
	s, ok := h.locker.(taker)
	if !ok {
		return h.locker
	}
	return taker{s.Semaphore, 1}
}

// leavePermit has the operator leave a znode among the permits'.
func leavePermit(env *environment) { env.putPermit() }

// jumpQueue has the operator create a permit's znode now and then, and delete it.
func jumpQueue(env *environment) {
	for env.now() < env.plan.horizon {
		if path := env.putPermit(framework.Ephemeral()); path != "" {
			_ = env.operator.Delete(env.ctx, path, framework.Guaranteed()) // the fault is done
		}
		pass(env.plan.timeout / 8)
	}
}

func (env *environment) putPermit(opts ...framework.CreateOption) string {
	ctx, cancel := context.WithTimeout(env.ctx, env.plan.timeout)
	defer cancel()
	path, err := env.operator.Create(ctx, permitsPath+"/leases/_c_-lease-", nil,
		append(opts, framework.Sequential(), framework.WithParents())...)
	if err != nil {
		return ""
	}
	return path
}
