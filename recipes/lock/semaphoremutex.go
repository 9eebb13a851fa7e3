package lock

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A SemaphoreMutex is a fair lock without owners: any goroutine that has the lease may release it.
// A call never re-enters, so a holder that locks again waits, forever if no other goroutine
// releases. It is Curator's InterProcessSemaphoreMutex, a semaphore with one permit, and can share
// a path with it. If no Curator process contends, a [Mutex] does the same with fewer requests, with
// a new [Owner] for each call. Its methods may be called concurrently.
type SemaphoreMutex struct {
	path   string // as its user gave it
	full   string // in the ensemble
	cfg    config
	tel    telemetry.Lock
	turns  *waitqueue.Queue // the contenders for the lease; the first acquires it next
	leases *waitqueue.Queue // for Participants
}

// The directories below the lock's path, and the part of a lease's name before the number. A
// contender has a mutex's znode in locks.
const (
	locksDir  = "locks"
	leasesDir = "leases"
	leaseKind = "lease-"
)

// NewSemaphoreMutex returns the lock at path and sends nothing yet. The directories of its znodes
// are below the path. All three and missing parents are created as containers when they are needed.
// Two SemaphoreMutex values on one path are the same lock. If arguments are faulty,
// NewSemaphoreMutex returns all faults.
func NewSemaphoreMutex(c *framework.Client, path string, opts ...Option) (*SemaphoreMutex, error) {
	cfg, err := newConfig("semaphore mutex", c, path, opts)
	if err != nil {
		return nil, err
	}
	dir := func(name, kind string) *waitqueue.Queue {
		return &waitqueue.Queue{
			Client: c, Dir: framework.JoinPath(path, name), Kinds: []string{kind}, ACL: cfg.acl,
			Predecessor: waitqueue.ExclusivePredecessor,
		}
	}
	return &SemaphoreMutex{
		path:   path,
		full:   c.AbsolutePath(path),
		cfg:    cfg,
		tel:    telemetry.Of(c, telemetry.TypeSemaphore, cfg.name, c.AbsolutePath(path)),
		turns:  dir(locksDir, mutexKind),
		leases: dir(leasesDir, leaseKind),
	}, nil
}

// Lock waits until the caller holds the lock and returns the lease. ctx bounds the wait only. If
// ctx ends first, the error is a [*WaitError] that wraps ctx's error. The attempt's znodes are then
// gone, or their deletion continues in the background. If the session ends while Lock waits, Lock
// queues again in the next session. Other errors are the client's, when its retry policy is
// exhausted: see package framework.
func (m *SemaphoreMutex) Lock(ctx context.Context) (*Lease, error) {
	l, err := m.acquire(ctx, (*semaphoreAttempt).run)
	return l, callError(ctx, "lock", m.path, err)
}

// TryLock makes one attempt and returns a lease, or [ErrHeld] if there is a holder or a waiter. It
// never waits for another holder; ctx bounds its requests. If the client's own server shows a
// holder, it costs one read. A server that lags behind its leader may still show a lease that was
// released a moment ago.
func (m *SemaphoreMutex) TryLock(ctx context.Context) (*Lease, error) {
	l, err := m.acquire(ctx, (*semaphoreAttempt).try)
	return l, callError(ctx, "try lock", m.path, err)
}

// Participants returns the lock's holder and its waiters, in the order of the queue, or none if the
// queue is empty. The next holder may be listed twice: it has a znode among the leases, of kind
// "lease-", and one in the queue, of kind "lock-". So has the holder, for a moment after the grant.
// The list is a snapshot of a moment that has passed.
func (m *SemaphoreMutex) Participants(ctx context.Context) ([]Participant, error) {
	found, err := contender.Participants(cause.Inside(ctx), m.leases)
	if err != nil {
		return nil, callError(ctx, "participants of", m.path, err)
	}
	queued, err := contender.Participants(cause.Inside(ctx), m.turns)
	if err != nil {
		return nil, callError(ctx, "participants of", m.path, err)
	}
	for i := range queued {
		queued[i].Holder = false
	}
	return append(found, queued...), nil
}

// Path returns the lock's path.
func (m *SemaphoreMutex) Path() string { return m.path }

func (m *SemaphoreMutex) acquire(ctx context.Context, get func(*semaphoreAttempt, context.Context) error) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	ctx, seen := m.tel.Begin(cause.Inside(ctx))
	return contender.Observed(ctx, seen, func() (*Lease, error) { return m.contend(ctx, seen, get) })
}

func (m *SemaphoreMutex) contend(ctx context.Context, seen *telemetry.Acquire, get func(*semaphoreAttempt, context.Context) error) (*Lease, error) {
	a := m.newAttempt(ctx, seen)
	granted := false
	defer func() {
		if !granted { // also if a user's function panicked
			a.withdraw()
		}
	}()
	err := get(a, ctx)
	if err == nil && ctx.Err() != nil {
		// Both at once: after the end of ctx there is no lease.
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	lease := a.lease(ctx)
	granted = true
	return lease, nil
}
