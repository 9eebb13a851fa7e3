package lock

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A SemaphoreMutex is a fair lock without owners: whoever has the lease may
// release it, and nobody can re-enter, so who has it and locks again waits, for
// ever if nobody else releases it. It is Curator's InterProcessSemaphoreMutex,
// with which it can share a path: a semaphore with one permit. Where no such
// process takes part, a [Mutex] does the same with fewer requests, if each
// call is given an owner of its own. Its methods may be called concurrently.
type SemaphoreMutex struct {
	path   string // as its user gave it
	full   string // in the ensemble
	cfg    config
	tel    telemetry.Lock
	turns  *waitqueue.Queue // those who ask for the lease; the first of them takes it next
	leases *waitqueue.Queue // for Participants
}

// The directories below the lock's path, and what precedes the number in the
// name of a lease's znode. Who asks has a mutex's znode in locks.
const (
	locksDir  = "locks"
	leasesDir = "leases"
	leaseKind = "lease-"
)

// NewSemaphoreMutex returns the lock at path; nothing is sent yet. Below the
// path lie the directories of its znodes: all three, and missing parents, are
// created, as containers, when they are needed. Two SemaphoreMutex values on one
// path are the same lock. Where arguments are faulty NewSemaphoreMutex returns
// all faults.
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

// Lock waits until the lock is the caller's and returns the lease. ctx bounds
// the wait only; if it ends first, the error wraps ctx's error, and the
// attempt's znodes are gone or their deletion goes on in the background. Should
// the session end while Lock waits, it queues again in the next one. Other
// errors are those of the client, when its policy is exhausted: see package
// framework.
func (m *SemaphoreMutex) Lock(ctx context.Context) (*Lease, error) {
	l, err := m.acquire(ctx, (*semaphoreAttempt).run)
	return l, callError(ctx, "lock", m.path, err)
}

// TryLock makes one attempt and returns a lease, or [ErrHeld] where somebody has
// the lock or stands in the queue. It never waits for another holder; ctx bounds
// its requests. Where somebody can be seen to have the lock it costs one read, by
// the client's own server: one that lags behind its leader may still show a
// lease that was released a moment ago.
func (m *SemaphoreMutex) TryLock(ctx context.Context) (*Lease, error) {
	l, err := m.acquire(ctx, (*semaphoreAttempt).try)
	return l, callError(ctx, "try lock", m.path, err)
}

// Participants returns the lock's holder and those who wait for it, in the order
// of the queue; none if nobody is there. Who is next may be in it twice: it has
// a znode among the leases, of kind "lease-", beside the one in the queue, of
// kind "lock-"; so has the holder, for a moment after the grant. The list is a
// snapshot of a moment that has passed.
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
		if !granted { // also if a function of the user's panicked
			a.withdraw()
		}
	}()
	err := get(a, ctx)
	if err == nil && ctx.Err() != nil {
		// Both at once: no lease is returned to somebody who has gone.
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	lease := a.lease(ctx)
	granted = true
	return lease, nil
}
