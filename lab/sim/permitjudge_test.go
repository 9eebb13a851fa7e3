package sim_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
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
// permit may be created out of turn: see checkTurn. It needs w.mu.
func (w *world) permitsMade(x zkserver.Transaction, c zkserver.Change) {
	dir, _ := framework.SplitPath(c.Path)
	i := slices.IndexFunc(w.plan.targets, func(t *target) bool {
		return (t.permits > 0 || t.kind == "semaphore") && dir == t.path+"/leases"
	})
	if i < 0 {
		return
	}
	t := w.plan.targets[i]
	own := nodeKey{c.Path, x.Zxid}
	t.made[x.Zxid] = append(t.made[x.Zxid], own)
	queue := t.path + "/locks"
	first := ""
	for _, path := range w.inDir[queue] {
		_, number, _ := ranks(path)
		if _, least, _ := ranks(first); first == "" || number < least {
			first = path
		}
	}
	if t.permits > 0 {
		w.counts["turns checked"]++
	}
	if w.nodes[first].owner == c.Owner || w.doomedIn(queue) {
		return
	}
	switch {
	case t.permits > 0:
		w.violatedLocked(grantOrder, "session %v has created %s out of turn, and %q is the first in the queue", hex(c.Owner), c.Path, first)
	case first != "":
		t.ahead[own] = nodeKey{first, w.nodes[first].czxid}
		w.counts["single permits made out of turn"]++
	default:
		w.counts["single permits made without a turn"]++
	}
}

// checkTurn is the validator of "order" for a single permit. If it was created out of turn, the first in the
// queue of that moment is gone by the time of the grant. It needs w.mu.
func (w *world) checkTurn(s *lockRecord) {
	first, outOfTurn := s.target.ahead[s.node]
	dir, _ := framework.SplitPath(first.path)
	if outOfTurn && w.nodes[first.path].czxid == first.czxid && !w.doomedIn(dir) {
		w.violatedLocked(grantOrder, "%s is granted to %s out of turn while %s stands ahead", s.target.path, s.node.path, first.path)
	}
}

// doomedIn reports whether the operator has deleted a znode of the directory. It needs w.mu.
func (w *world) doomedIn(dir string) bool {
	for key := range w.doomed {
		if at, _ := framework.SplitPath(key.path); at == dir {
			return true
		}
	}
	return false
}

// nodesOf returns the znodes that a lease is held by. It needs w.mu.
func (w *world) nodesOf(t *target, l *lock.Lease) []nodeKey {
	own := w.identify(l)
	if t.kind != permitsKind {
		return []nodeKey{own}
	}
	return t.made[own.czxid]
}

// checkPermits is the validator of "all permits at once": one transaction has created the znodes of
// all permits that the lease is of. It needs w.mu.
func (w *world) checkPermits(t *leaseRecord) {
	h := t.handle
	if h.permits == 0 {
		return
	}
	h.target.freed = w.now() // from now on fewer are free
	w.counts[fmt.Sprint("grants of ", h.permits)]++
	if len(t.stakes) != h.permits {
		w.violatedLocked(allAtOnce, "%s is granted with %d permits, and one transaction created %d znodes", t, h.permits, len(t.stakes))
	}
}

// checkNumber is the validator of "at most n permits". It needs w.mu.
func (w *world) checkNumber(t *target) {
	if t.kind != permitsKind {
		return
	}
	parties := make(map[string]int)
	held := 0
	for _, s := range t.stakes {
		if !w.over(s) && !w.excused(s) {
			parties[s.party]++
			held++
		}
	}
	if len(parties) > 1 {
		w.counts["permits shared"]++
	}
	if held > t.permits {
		w.violatedLocked(atMostN, "%d of %d permits of %s are held: %v", held, t.permits, t.path, parties)
	}
}

// hasRoom reports whether there are permits for any contender that waits. It needs w.mu.
func (w *world) hasRoom(t *target) bool {
	needed := 0
	for _, k := range w.workers {
		if k.waiting != nil && k.waiting.of(t) {
			needed = max(needed, k.waiting.permits)
		}
	}
	for _, s := range t.stakes {
		if !w.over(s) {
			needed++
		}
	}
	return needed <= t.permits
}

// checkReturned is the validator of "permits return", once all is well and the workers have ended: one
// client can acquire all permits.
func (w *world) checkReturned() {
	ctx, cancel := context.WithTimeout(w.ctx, 2*w.settling()+30*time.Second)
	defer cancel()
	s, err := semaphore.New(w.operator, permitsPath, semaphorePermits)
	if err != nil {
		panic(err) // the arguments are ours
	}
	l, err := s.Acquire(ctx, semaphorePermits)
	if err == nil {
		w.count("all permits at the end", 1)
		err = l.Release(ctx)
	}
	if err != nil && w.ctx.Err() == nil {
		w.violated(permitsReturn, "all is well, and a client can't acquire and release all permits: %v", err)
	}
}
