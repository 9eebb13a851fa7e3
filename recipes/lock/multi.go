package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
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
// its cause. The other members are released in the background. [Lease.Members] returns the members'
// leases, each with its own node, fence and guard. [Lease.Guards] has the guards of all.
//
// A Multi has no znodes of its own. Curator's InterProcessMultiLock can have the same members. It
// locks them in the order given, which has to be that of their paths.
type Multi struct {
	members []member       // immutable; in the order of their locking
	name    string         // immutable; of all members
	tel     telemetry.Lock // immutable
}

// NewMulti returns the Multi of the locks and sends nothing yet. The locks may be of several
// clients, and may be Multis, whose members become members. A Locker of another package must return
// leases of this package's locks. Its place in the order is its method Path() string; without that
// method it comes first. If there is no lock, if one is nil or given twice, or if two kinds of lock are
// on one path, NewMulti returns all faults.
func NewMulti(locks ...Locker) (*Multi, error) {
	members, err := newMembers(locks)
	if err != nil {
		return nil, fmt.Errorf("lock: new multi: %w", err)
	}
	names := make([]string, len(members))
	observers := make([]telemetry.Lock, len(members))
	for i, m := range members {
		names[i], observers[i] = m.name, m.tel
	}
	name := strings.Join(names, ", ")
	return &Multi{members: members, name: name, tel: telemetry.Multi(name, observers)}, nil
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
	a := &acquisition{members: m.members, name: m.name, caller: callerOf(ctx), try: try, limit: maxTogether, rounds: pace.Rounds()}
	if m.reenters(a.caller) {
		return m.lock(cause.Inside(ctx), nil, a)
	}
	ctx, seen := m.tel.Begin(cause.Inside(ctx))
	return contender.Observed(ctx, seen, func() (*Lease, error) {
		slowest := m.slowest()
		if !try || slowest == nil {
			return m.lock(seen.Around(ctx), seen, a)
		}
		return contender.Try(ctx, slowest, func(ctx context.Context) (*Lease, error) {
			return m.lock(seen.Around(ctx), seen, a)
		})
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

func (m *Multi) lock(ctx context.Context, seen *telemetry.Acquire, a *acquisition) (*Lease, error) {
	leases, err := a.run(ctx)
	if err != nil {
		return nil, a.waitError(ctx, err)
	}
	first := contender.ShareOf(leases[0]).Hold()
	return contender.NewLease(hold.Options{
		Client: first.Client,
		Path:   m.name,
		Grant:  &multiGrant{leases},
		Hooks:  seen.Granted(ctx, 0, sessionOf(first)),
	}, AtDeadline, nil, leases...), nil
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
					i, m.name, members[twin].position))
				continue
			}
			if i := slices.IndexFunc(members, func(other member) bool { return !m.sharesWith(other) }); i >= 0 {
				faults = append(faults, fmt.Errorf("lock %d (%s): %w: lock %d", m.position, m.name, ErrMixed, members[i].position))
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
