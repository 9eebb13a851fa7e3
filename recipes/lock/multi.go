package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// A Multi is several locks that are held together: all of them or none. It is a [Locker] itself. It
// locks its members in the order of their paths, in whatever order they were given. It waits for
// one at a time, and meanwhile holds only earlier ones. So it never deadlocks with other Multis,
// nor with code that locks one after another in that order. Its methods may be called concurrently.
//
// Consecutive members of one client that are mutexes or sides of read/write locks are locked by one
// transaction, and released by one. If all are free, they cost little more than one of them. A
// member that the caller holds already is re-entered, if it is reentrant.
//
// If the lease of one member is lost, the Multi's lease is lost, with the member's [*LostError] as
// its cause. The other members are released in the background. [lease.Lease.Members] returns the members'
// leases, each with its own node, fence and guard. [lease.Lease.Guards] has the guards of all.
//
// A Multi has no znodes of its own. Curator's InterProcessMultiLock can have the same members. It
// locks them in the order given, which has to be that of their paths.
type Multi struct {
	members []member       // immutable; in the order of their locking
	name    string         // immutable; of all members
	shown   string         // immutable; name with the paths in the ensemble, for errors
	tel     telemetry.Lock // immutable
}

// NewMulti returns the Multi of the locks and sends nothing yet. The locks may be of several
// clients, and may be Multis, whose members become members. A Locker of another package must return
// leases of this package's locks. Its place in the order is that of a lock of this package that it
// embeds, else its method Path() string, which must then return the path in the ensemble, with chroot
// and namespace; without that method it comes first. If there is no lock, if one is nil or given twice,
// as a Local and its mutex, or if two kinds of lock are on one path, NewMulti returns all faults.
func NewMulti(locks ...Locker) (*Multi, error) {
	members, err := newMembers(locks)
	if err != nil {
		return nil, fmt.Errorf("lock: new multi: %w", err)
	}
	names, shown := make([]string, len(members)), make([]string, len(members))
	observers := make([]telemetry.Lock, len(members))
	for i, m := range members {
		names[i], shown[i], observers[i] = m.name, m.shown(), m.tel
	}
	name := strings.Join(names, ", ")
	return &Multi{members: members, name: name, shown: strings.Join(shown, ", "), tel: telemetry.Multi(name, observers)}, nil
}

// Lock waits until the caller holds all members and returns their common lease. ctx bounds the wait
// only. If ctx ends first or a member fails, Lock releases the members that it has locked. The
// error is the member's, or wraps ctx's, joined with the errors of the releases. Nothing of the
// attempt blocks other contenders. If a locked member is lost while Lock waits for others, Lock
// starts again.
func (m *Multi) Lock(ctx context.Context) (*Lease, error) {
	l, err := m.acquire(ctx, false)
	return l, cause.Join(ctx, err)
}

// TryLock makes one attempt at all members and returns their common lease. If another owner holds a
// member or waits for it, TryLock returns [ErrHeld] with that member's name, and releases the
// others. It never waits for another holder. ctx bounds its requests, and so does the longest connect
// timeout of the members' clients: see [Locker].
func (m *Multi) TryLock(ctx context.Context) (*Lease, error) {
	l, err := m.acquire(ctx, true)
	return l, cause.Join(ctx, err)
}

func (m *Multi) acquire(ctx context.Context, try bool) (*Lease, error) {
	a := &acquisition{members: m.members, shown: m.shown, caller: callerOf(ctx), try: try, limit: maxTogether, rounds: pace.Rounds()}
	tel, slowest := m.tel, m.slowest()
	if m.reenters(a.caller) {
		tel = telemetry.Lock{} // a hold may be lost meanwhile: then it is locked again
	}
	return contender.Acquire(ctx, tel, slowest, try && slowest != nil, func(ctx context.Context, acq *telemetry.Acquire) (*Lease, error) {
		return m.lock(acq.Around(ctx), acq, a)
	})
}

// slowest returns the client of a member with the longest connect timeout; nil if all members are of
// other packages.
func (m *Multi) slowest() (slowest *framework.Client) {
	for _, member := range m.members {
		if c := member.client; c != nil && (slowest == nil || c.ConnectTimeout() > slowest.ConnectTimeout()) {
			slowest = c
		}
	}
	return slowest
}

func (m *Multi) lock(ctx context.Context, acq *telemetry.Acquire, a *acquisition) (*Lease, error) {
	leases, err := a.run(ctx)
	if err != nil {
		return nil, m.waitError(ctx, a.try, err)
	}
	first := contender.ShareOf(leases[0]).Hold()
	return contender.NewLease(hold.Options{
		Client: first.Client,
		Path:   m.name,
		Shown:  m.shown,
		Grant:  &multiGrant{leases},
		Hooks:  acq.Granted(ctx, 0, sessionOf(first)),
	}, lease.AtDeadline, nil, leases...), nil
}

// waitError returns err with a WaitError for a wait that ctx ended, unless a member's has one already.
func (m *Multi) waitError(ctx context.Context, try bool, err error) error {
	var wait *WaitError
	c := m.slowest()
	if try || c == nil || errors.As(err, &wait) {
		return err
	}
	err = contender.WaitError(ctx, c, m.name, -1, nil, err)
	if errors.As(err, &wait) {
		wait.AbsolutePath = m.shown
	}
	return err
}

// reenters reports whether the caller holds all members already.
func (m *Multi) reenters(c caller) bool {
	for _, member := range m.members {
		if member.queueLock == nil || member.queueLock.owners.count(member.queueLock.key(c)) == 0 {
			return false
		}
	}
	return true
}

// Members returns the names of the members, in the order in which they are locked: the path of
// each, or "write side of" and the path.
func (m *Multi) Members() []string {
	names := make([]string, len(m.members))
	for i, member := range m.members {
		names[i] = member.name
	}
	return names
}

// Path returns the names of the members, separated by ", ".
func (m *Multi) Path() string { return m.name }

// newMembers returns the members in the order of their locking, or all faults of the locks.
func newMembers(locks []Locker) ([]member, error) {
	var members []member
	var faults []error
	for i, l := range locks {
		added, err := membersOf(l)
		if err != nil {
			faults = append(faults, fmt.Errorf("lock %d: %w", i, err))
		}
		for _, m := range added {
			m.position = i
			if twin := slices.IndexFunc(members, m.same); twin >= 0 {
				faults = append(faults, fmt.Errorf("lock %d (%s): must not be there twice, it is lock %d too",
					i, m.shown(), members[twin].position))
				continue
			}
			if i := slices.IndexFunc(members, func(other member) bool { return !m.sharesWith(other) }); i >= 0 {
				faults = append(faults, fmt.Errorf("lock %d (%s): %w: lock %d", m.position, m.shown(), ErrMixed, members[i].position))
			}
			members = append(members, m)
		}
	}
	if len(locks) == 0 {
		faults = append(faults, errors.New("locks: must be at least one"))
	}
	slices.SortStableFunc(members, member.compare)
	return members, errors.Join(faults...)
}

// A multiGrant is the grant of a [Multi]: a lease of each member, in the order of their locking.
type multiGrant struct{ members []*Lease }

// Node returns "": each member has a znode of its own.
func (g *multiGrant) Node() string { return "" }

// Fence returns 0: each member has a fence of its own.
func (g *multiGrant) Fence() int64 { return 0 }

// Guards returns the guards of the members that were not released on their own.
func (g *multiGrant) Guards() []framework.TxnOp {
	var guards []framework.TxnOp
	for _, member := range g.remaining() {
		guards = append(guards, member.Guards()...)
	}
	return guards
}

// Deadline returns the earliest deadline of the members that were not released on their own.
func (g *multiGrant) Deadline() time.Time {
	leases := g.remaining()
	earliest := leases[0].Deadline()
	for _, l := range leases[1:] {
		if d := l.Deadline(); d.Before(earliest) {
			earliest = d
		}
	}
	return earliest
}

// remaining returns the leases of the members that were not released on their own; of all, if each was:
// then a transaction with their guards fails.
func (g *multiGrant) remaining() []*Lease {
	released := func(l *Lease) bool { return errors.Is(l.Err(), ErrReleased) }
	if !slices.ContainsFunc(g.members, released) {
		return g.members
	}
	if held := slices.DeleteFunc(slices.Clone(g.members), released); len(held) > 0 {
		return held
	}
	return g.members
}

// Err returns the loss of a member. A member that was released on its own is not lost.
func (g *multiGrant) Err() error {
	for _, l := range g.members {
		if err := l.Err(); errors.Is(err, ErrLost) {
			return err
		}
	}
	return nil
}

// OnLost registers notify and after for the loss of a member.
func (g *multiGrant) OnLost(notify func(error), after func()) {
	for _, l := range g.members {
		contender.ShareOf(l).OnLost(notify, after)
	}
}

// Release releases the remaining members, in reverse order.
func (g *multiGrant) Release(ctx context.Context) error {
	return releaseAll(ctx, slices.Backward(g.members))
}

// Discard releases the remaining members in the background, because other contenders may wait for
// them.
func (g *multiGrant) Discard() { discardAll(g.members) }

// discardAll releases the leases in the background, in reverse order.
func discardAll(leases []*Lease) {
	for _, l := range slices.Backward(leases) {
		contender.ShareOf(l).Discard()
	}
}

// releaseAll releases the leases in the given order. Consecutive leases that rest on queued znodes
// of one client are released by one transaction. Leases that were released before are skipped.
func releaseAll(ctx context.Context, leases iter.Seq2[int, *Lease]) error {
	var errs []error
	var run []*hold.Hold // to be released by one transaction
	flush := func() {
		errs = append(errs, releaseTogether(ctx, run)...)
		run = nil
	}
	for _, l := range leases {
		h := contender.ShareOf(l).Hold()
		_, queued := h.Grant.(*contender.Grant)
		if !queued || len(run) > 0 && ownersOf(run[0].Client) != ownersOf(h.Client) {
			flush()
		}
		if !queued {
			errs = append(errs, unlessReleased(l.Release(ctx)))
			continue
		}
		last, err := contender.ShareOf(l).Drop()
		errs = append(errs, unlessReleased(err))
		if last {
			run = append(run, h)
		}
	}
	flush()
	return errors.Join(errs...)
}

func unlessReleased(err error) error {
	if errors.Is(err, ErrReleased) {
		return nil
	}
	return err
}

// releaseTogether releases holds of one client by one transaction, after their last shares were
// dropped.
func releaseTogether(ctx context.Context, holds []*hold.Hold) []error {
	nodes := make([]*hold.Znode, len(holds))
	for i, h := range holds {
		h.EndMonitors()
		nodes[i] = h.Znode
	}
	errs := waitqueue.DeleteAll(ctx, nodes)
	for i, h := range holds {
		errs[i] = h.Grant.(*contender.Grant).Released(errs[i])
		h.Hooks.Released(errs[i])
	}
	return errs
}

// sessionOf returns the session of a hold's znode, 0 if the hold has no znode of its own.
func sessionOf(h *hold.Hold) int64 {
	if h.Znode == nil {
		return 0
	}
	return h.Znode.Session.Session()
}

// A member is one of a [Multi]'s locks.
type member struct {
	lock      Locker
	name      string // for spans and logs
	side      string // what precedes the path in the name
	path      string // in the ensemble
	rank      int    // of its kind, among locks of one path
	position  int    // among those that were given
	client    *framework.Client
	owners    *owners    // of the client; nil for a foreign lock, as client is
	queueLock *queueLock // nil if it can't be locked together with others
	tel       telemetry.Lock
}

// The ranks of kinds. A write side comes before the read side, which is then
// re-entered: the other way round would be an upgrade.
const (
	rankMutex = iota + 1
	rankWrite
	rankRead
	rankSemaphoreMutex
	rankUnfairMutex
	rankForeign
)

// A pather is a foreign lock that has a path, and so a place in the order.
type pather interface{ Path() string }

// ensemblePath returns the path of a foreign lock in the ensemble. A lock that embeds one of this package
// has that one's. The path of another lock has to be that of the ensemble.
func ensemblePath(l pather) string {
	if embeds, ok := l.(interface{ ensemblePath() string }); ok {
		return embeds.ensemblePath()
	}
	return l.Path()
}

func (m *Mutex) ensemblePath() string          { return m.queueLock.full }
func (s *Side) ensemblePath() string           { return s.queueLock.full }
func (m *SemaphoreMutex) ensemblePath() string { return m.pool.Client.AbsolutePath(m.pool.Path) }
func (m *UnfairMutex) ensemblePath() string    { return m.full }
func (l *Local) ensemblePath() string          { return l.mutex.ensemblePath() }

// isNil reports whether l is nil, or a nil pointer.
func isNil(l Locker) bool {
	v := reflect.ValueOf(l)
	return l == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// membersOf returns the member for l, or a Multi's members.
func membersOf(l Locker) ([]member, error) {
	if isNil(l) {
		return nil, errors.New("must not be nil")
	}
	m := member{lock: l}
	switch l := l.(type) {
	case *Multi:
		return l.members, nil
	case *Mutex:
		m.setLock(&l.queueLock, "", rankMutex)
	case *Side:
		rank := rankRead
		if l.queueLock.kind == writeKind {
			rank = rankWrite
		}
		m.setLock(&l.queueLock, l.name+" side of ", rank)
	case *SemaphoreMutex:
		p := &l.pool
		m.name, m.path, m.rank = p.Path, p.Client.AbsolutePath(p.Path), rankSemaphoreMutex
		m.client, m.owners, m.tel = p.Client, ownersOf(p.Client), p.Telemetry
	case *UnfairMutex:
		m.name, m.path, m.rank = l.path, l.full, rankUnfairMutex
		m.client, m.owners, m.tel = l.client, ownersOf(l.client), l.tel
	case *Local: // of the mutex's rank: with that mutex, a Multi would wait for itself
		m.setLock(&l.mutex.queueLock, "", rankMutex)
		m.queueLock = nil
	case pather:
		m.name, m.path, m.rank = l.Path(), ensemblePath(l), rankForeign
	default:
		m.name, m.rank = fmt.Sprintf("%T", l), rankForeign
	}
	return []member{m}, nil
}

func (m *member) setLock(q *queueLock, side string, rank int) {
	m.name, m.side, m.path, m.rank = side+q.path, side, q.full, rank
	m.client, m.owners, m.queueLock, m.tel = q.queue.Client, q.owners, q, q.tel
}

// shown returns the name with the path in the ensemble, for errors.
func (m member) shown() string {
	if m.path == "" {
		return m.name
	}
	return m.side + m.path
}

// same reports whether both are one lock.
func (m member) same(other member) bool {
	if m.owners == nil || other.owners == nil {
		return reflect.ValueOf(m.lock).Comparable() && m.owners == other.owners && m.lock == other.lock
	}
	return m.owners == other.owners && m.path == other.path && m.rank == other.rank
}

// sharesWith reports whether both may be at one path: see
// docs/guarantees.md#kinds-of-locks-on-one-path. Nothing is known of a foreign lock.
func (m member) sharesWith(other member) bool {
	if m.owners == nil || m.owners != other.owners || m.path != other.path || m.rank == other.rank {
		return true
	}
	sides := func(rank int) bool { return rank == rankRead || rank == rankWrite }
	return sides(m.rank) && sides(other.rank)
}

// compare orders members as all Multis lock them. The order is total: members of one path and kind
// belong to different clients, and keep the order given.
func (m member) compare(other member) int {
	return cmp.Or(cmp.Compare(m.path, other.path), cmp.Compare(m.rank, other.rank), cmp.Compare(m.position, other.position))
}

// maxTogether bounds the members of one transaction. The request then takes about 40 KiB of the 1
// MiB that servers accept by default, unless the data is large.
const maxTogether = 100

// together returns how many of the first members can be locked by one transaction. The two sides of
// one lock can't: the caller would wait for itself.
func together(members []member, limit int) int {
	n := 0
	for n < len(members) && n < limit && members[n].queueLock != nil && members[n].owners == members[0].owners {
		if n > 0 && members[n].path == members[n-1].path {
			break
		}
		n++
	}
	return n
}
