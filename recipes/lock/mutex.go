package lock

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A Mutex is a fair, reentrant lock. It is Curator's InterProcessMutex and can share a path with
// it. Its methods may be called concurrently.
//
// See the package's sections on holding and losing a lock, and on reentrancy.
type Mutex struct{ queueLock queueLock } // immutable

// mutexKind is the part of a znode's name before the number.
const mutexKind = queuenode.MutexKind

// NewMutex returns the mutex at path and sends nothing yet. The path is the directory of the
// contenders' znodes. The directory and its parents are created as containers when they are needed.
// Two Mutex values with one client and one path are the same lock, and agree on its owners. If
// arguments are faulty, NewMutex returns all faults.
func NewMutex(c *framework.Client, path string, opts ...Option) (*Mutex, error) {
	cfg, err := newConfig("mutex", c, path, opts)
	if err != nil {
		return nil, err
	}
	queue := &waitqueue.Queue{
		Client: c, Dir: path, Kinds: []string{mutexKind}, ACL: cfg.ACL,
		Predecessor: queuenode.ExclusivePredecessor, OnPosition: cfg.QueuePosition, OnLongWait: logLongWait(c, path),
	}
	return &Mutex{newQueueLock(queue, cfg, mutexKind, telemetry.TypeMutex)}, nil
}

// Lock waits until the caller holds the mutex and returns a lease of it. An owner that holds it
// already gets a further lease at once. ctx bounds the wait only. If ctx ends first, the error is a
// [*WaitError] that wraps ctx's error. The attempt's znode is then gone, or its deletion continues
// in the background. If the session ends while Lock waits, Lock queues again in the next session.
// Other errors are the client's, when its retry policy is exhausted: see package framework.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) {
	l, err := m.queueLock.acquire(ctx, callerOf(ctx), false)
	return l, recipe.CallError(ctx, m.queueLock.queue.Client, "lock", m.queueLock.path, err)
}

// TryLock makes one attempt and returns a lease, or [ErrHeld] if another owner holds the mutex or
// waits for it. It never waits for another holder; ctx and the connect timeout bound its requests:
// see [Locker]. If a listing shows another contender, it writes nothing.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	l, err := m.queueLock.acquire(ctx, callerOf(ctx), true)
	return l, recipe.CallError(ctx, m.queueLock.queue.Client, "try lock", m.queueLock.path, err)
}

// Unlock releases the latest lease of the caller, as [lease.Lease.Release] does. It
// returns [ErrNotOwner] if the caller has none, and a [*LostError] if it has only
// lost ones.
func (m *Mutex) Unlock(ctx context.Context) error {
	return m.queueLock.unlock(ctx, "unlock")
}

// Held returns the caller's lock count: the number of its leases that are neither released nor
// lost.
func (m *Mutex) Held(ctx context.Context) int { return m.queueLock.held(ctx) }

// Participants returns the mutex's holder and its waiters, in the order of the queue, or none if
// the queue is empty. The list is a snapshot of a moment that has passed.
func (m *Mutex) Participants(ctx context.Context) ([]Participant, error) {
	found, err := contender.Participants(ctx, m.queueLock.queue)
	return found, recipe.CallError(ctx, m.queueLock.queue.Client, "participants of", m.queueLock.path, err)
}

// Path returns the mutex's path.
func (m *Mutex) Path() string { return m.queueLock.path }
