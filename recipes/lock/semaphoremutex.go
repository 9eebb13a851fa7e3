package lock

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/permits"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// A SemaphoreMutex is a fair lock without owners: any goroutine that has the lease may release it.
// A call never re-enters, so a holder that locks again waits, forever if no other goroutine
// releases. It is Curator's InterProcessSemaphoreMutex, a semaphore with one permit, and can share
// a path with it. If no Curator process contends, a [Mutex] does the same with fewer requests, with
// a new [Owner] for each call. Its methods may be called concurrently.
type SemaphoreMutex struct {
	pool permits.Pool // of one permit
	cfg  config
}

// NewSemaphoreMutex returns the lock at path and sends nothing yet. The directories of its znodes
// are below the path. All three and missing parents are created as containers when they are needed.
// Two SemaphoreMutex values on one path are the same lock. If arguments are faulty,
// NewSemaphoreMutex returns all faults.
func NewSemaphoreMutex(c *framework.Client, path string, opts ...Option) (*SemaphoreMutex, error) {
	cfg, err := newConfig("semaphore mutex", c, path, opts)
	if err != nil {
		return nil, err
	}
	full := c.AbsolutePath(path)
	return &SemaphoreMutex{cfg: cfg, pool: permits.Pool{
		Client: c, Path: path, Permits: permits.Number{Fixed: 1}, ACL: cfg.ACL,
		LossPolicy: cfg.LossPolicy, Revoked: cfg.Revocation, Position: cfg.QueuePosition,
		LongWait:  logLongWait(c, path),
		Telemetry: telemetry.Of(c, telemetry.TypeSemaphoreMutex, cfg.Name, full), Recipe: recipe,
	}}, nil
}

// Lock waits until the caller holds the lock and returns the lease. ctx bounds the wait only. If
// ctx ends first, the error is a [*WaitError] that wraps ctx's error. The attempt's znodes are then
// gone, or their deletion continues in the background. If the session ends while Lock waits, Lock
// queues again in the next session. Other errors are the client's, when its retry policy is
// exhausted: see package framework.
func (m *SemaphoreMutex) Lock(ctx context.Context) (*Lease, error) {
	l, err := m.pool.Acquire(ctx, 1, false, m.dataFor(ctx))
	return l, recipe.CallError(ctx, m.pool.Client, "lock", m.pool.Path, err)
}

// TryLock makes one attempt and returns a lease, or [ErrHeld] if there is a holder or a waiter. It
// never waits for another holder; ctx and the connect timeout bound its requests: see [Locker]. A
// refusal takes everything into account that was committed before the call, and costs three requests.
func (m *SemaphoreMutex) TryLock(ctx context.Context) (*Lease, error) {
	l, err := m.pool.Acquire(ctx, 1, true, m.dataFor(ctx))
	return l, recipe.CallError(ctx, m.pool.Client, "try lock", m.pool.Path, err)
}

// Participants returns the lock's holder and its waiters, in the order of the queue, or none if the
// queue is empty. The next holder may be listed twice: it has a znode among the leases, of kind
// "lease-", and one in the queue, of kind "lock-". So has the holder, for a moment after the grant.
// The list is a snapshot of a moment that has passed.
func (m *SemaphoreMutex) Participants(ctx context.Context) ([]Participant, error) {
	found, err := m.pool.Participants(ctx)
	return found, recipe.CallError(ctx, m.pool.Client, "participants of", m.pool.Path, err)
}

// Path returns the lock's path.
func (m *SemaphoreMutex) Path() string { return m.pool.Path }

// dataFor returns the data of the znodes of a call with ctx.
func (m *SemaphoreMutex) dataFor(ctx context.Context) func(*telemetry.Acquire) []byte {
	c := callerOf(ctx)
	return func(acq *telemetry.Acquire) []byte { return m.cfg.nodeData(m.pool.Client, c, "", acq) }
}
