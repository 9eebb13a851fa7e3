package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/lock"
)

// A leaseRecord is what one call of Lock or TryLock returned, until it is released.
type leaseRecord struct {
	lease  *lock.Lease
	client *client
	f      *framework.Client
	handle *handle
	stakes []*lockRecord // one for each member of a multi
	ctx    context.Context
	cancel context.CancelFunc

	began  time.Duration // when it was granted
	left   bool          // guarded by environment.mu: Release or Unlock has been called
	lostAt time.Time     // guarded by environment.mu: when it was seen to be lost
}

// A lockRecord is a lease's share in one target.
type lockRecord struct {
	target  *target
	record  *leaseRecord
	party   string
	shared  bool
	lease   *lock.Lease
	node    nodeKey
	session int64 // that the client says it has
	fence   int64
}

// over reports whether the holder has given the lease up, or has been told that it is
// lost. It needs env.mu.
func (env *environment) over(s *lockRecord) bool {
	if s.record.left || env.released[s.lease] {
		return true
	}
	return closed(s.lease.Lost()) || closed(s.record.lease.Lost())
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// enter records a grant and compares it with what is known of all other holders.
func (env *environment) enter(k *worker, f *framework.Client, h *handle, l *lock.Lease) *leaseRecord {
	session := f.Session().ID // before any check whether the lease is lost
	t := &leaseRecord{lease: l, client: k.c, f: f, handle: h, began: env.now()}
	t.ctx, t.cancel = l.Context(env.ctx)
	leases := l.Members()
	if leases == nil {
		leases = []*lock.Lease{l}
	}
	env.mu.Lock()
	defer env.mu.Unlock()
	env.note(k.name, "has "+h.name, nodeOf(l))
	env.counts["grants"]++
	env.counts["grants "+h.kind()]++
	t.left = env.released[l]
	for _, member := range leases {
		at := h.target
		if at == nil {
			at = env.target(unspelled(member.Path()))
		}
		kind, _, _ := ranks(member.Node())
		for _, node := range env.nodesOf(at, member) {
			s := &lockRecord{target: at, record: t, party: k.party(), lease: member, session: session, node: node}
			s.shared = kind == "read" || at.permits > 0
			s.fence = env.bug.fence(env, member)
			t.stakes = append(t.stakes, s)
			env.admitLocked(s)
		}
	}
	env.checkPermits(t)
	env.leases[l] = t
	env.watchLoss(t)
	return t
}

// identify returns which znode a lease is held by. Those in queues have names of their
// own. It needs env.mu.
func (env *environment) identify(l *lock.Lease) nodeKey {
	at := unspelled(l.Node())
	key := nodeKey{at, env.made[at].czxid}
	if l.Node() == l.Path() {
		key.czxid = l.Fence()
	}
	return key
}

// admitLocked holds a new lock against the guarantees. It needs env.mu.
func (env *environment) admitLocked(s *lockRecord) {
	t := s.target
	t.stakes = slices.DeleteFunc(t.stakes, func(other *lockRecord) bool { return env.over(other) })
	if env.over(s) {
		return
	}
	for _, other := range t.stakes {
		if env.conflict(s, other) {
			env.violatedLocked(t.alone(), "%s is granted to %s with %s while %s has it with %s, neither lost nor released",
				t.path, s.party, s.node.path, other.party, other.node.path)
		}
	}
	t.stakes = append(t.stakes, s)
	if env.excused(s) {
		return
	}
	env.checkNumber(t)
	env.checkSession(s)
	before, again := t.granted[s.node]
	t.granted[s.node] = s.party
	if again && (t.reentrant() || t.kind == mixedKind) {
		if t.kind != "rw" && before != s.party {
			env.counts["passed on"]++ // by a Local: these share a fence
		}
		return
	}
	env.checkOrder(s)
	env.checkFence(s)
}

func (env *environment) conflict(s, other *lockRecord) bool {
	switch {
	case s.shared && other.shared, env.excused(s), env.excused(other):
		return false
	case s.target.reentrant() && s.party == other.party:
		return false
	}
	return true
}

// excused reports whether another client has ended the lock's session, or deleted its znode, in a
// way that its holder can't know of in time.
func (env *environment) excused(s *lockRecord) bool {
	return env.doomed[s.node] || env.killed[env.made[s.node.path].owner] || env.killed[s.session]
}

// checkSession is the validator of "own session only".
func (env *environment) checkSession(s *lockRecord) {
	n, exists := env.nodes[s.node.path]
	switch {
	case !exists:
		env.violatedLocked(ownSession, "%s is granted on %s, which does not stand", s.target.path, s.node.path)
	case n.owner != s.session:
		env.violatedLocked(ownSession, "%s is granted on %s of session %#x, and the client's is %#x",
			s.target.path, s.node.path, n.owner, s.session)
	}
}

// checkOrder is the validator of "order": when a lock is granted, no contender is ahead that has
// to be waited for.
func (env *environment) checkOrder(s *lockRecord) {
	kind, own, ok := ranks(s.node.path)
	if !ok || s.target.kind == "exclusive" || s.target.kind == scheduleKind || s.target.permits > 0 {
		return // of a semaphore, see permitsMade
	}
	env.checkTurn(s)
	dir, _ := zkpath.Split(s.node.path)
	for _, n := range env.inDir[dir] {
		other, number, ok := ranks(n)
		if other == "read" && env.nodes[n].czxid > s.node.czxid {
			continue // a downgrade's: where its writer still has the lock, it is for "exclusion"
		}
		if s.target.kind == mixedKind && other != kind {
			continue // it was refused, and its deletion is pending
		}
		if ok && number < own && (kind != "read" || other == "write") {
			env.violatedLocked(grantOrder, "%s is granted to %s while %s stands ahead", s.target.path, s.node.path, n)
		}
	}
}

// checkFence is the validator of "monotonic fence", as far as grants go.
func (env *environment) checkFence(s *lockRecord) {
	t := s.target
	floor, own := t.highest, fence{s.fence, s.party}
	if s.shared { // those that share may come in any order
		floor = t.exclusive
	}
	// The sides of a read/write lock have one fence while an owner has both.
	if own.number <= floor.number && own != floor {
		env.violatedLocked(monotonicFence, "fence %d of %s after fence %d", s.fence, s.node.path, floor.number)
	}
	if own.number > t.highest.number {
		t.highest = own
	}
	if !s.shared && own.number > t.exclusive.number {
		t.exclusive = own
	}
}

// leave records that a lease is about to be released. If it is lost, leave checks that its end was
// reported everywhere.
func (env *environment) leave(t *leaseRecord, by string) {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.note(by, "gives up "+t.handle.name, nodeOf(t.lease))
	t.left = true
	env.freedLocked(t)
	env.released[t.lease] = true
	delete(env.leases, t.lease)
}

// askedToLeave is called with a lease of the client whose release was requested. Its holder may
// not have entered it yet.
func (env *environment) askedToLeave(l *lock.Lease) {
	env.mu.Lock()
	t := env.leases[l]
	env.released[l] = true
	env.mu.Unlock()
	if t != nil {
		env.leave(t, "revocation")
	}
}

// checkLoss checks that a lease that is lost says so in all ways.
func (env *environment) checkLoss(t *leaseRecord) {
	if !closed(t.lease.Lost()) {
		return
	}
	err := t.lease.Err()
	env.mu.Lock()
	defer env.mu.Unlock()
	env.counts["losses"]++
	if !errors.Is(err, lock.ErrLost) && !errors.Is(err, lock.ErrReleased) {
		env.violatedLocked(lossFirst, "Lost is closed and Err is %v", err)
	}
	switch {
	case t.lostAt.IsZero():
		t.lostAt = time.Now()
	case t.ctx.Err() == nil && time.Since(t.lostAt) > 0:
		env.violatedLocked(lossFirst, "the lease of %s is lost since %v and its context has not ended",
			nodeOf(t.lease), time.Since(t.lostAt))
	}
}

// String tells of a lease in the trace.
func (t *leaseRecord) String() string { return fmt.Sprint(t.handle.name, " ", nodeOf(t.lease)) }
