package lock

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A Mutex is a fair, reentrant lock: Curator's InterProcessMutex, with which it
// can share a path. Its methods may be called concurrently.
//
// See the package's sections on holding and losing a lock, and on reentrancy.
type Mutex struct{ queueLock queueLock } // immutable

const mutexName = "mutex" // in errors

// mutexKind is what precedes the number in the name of a mutex's znode.
const mutexKind = "lock-"

// NewMutex returns the mutex at path; nothing is sent yet. The path is the
// directory of the contenders' znodes: it and its parents are created, as
// containers, when they are needed. Two Mutex values with one client and one
// path are the same lock, and agree about its owners. Where arguments are faulty
// NewMutex returns all faults.
func NewMutex(c *framework.Client, path string, opts ...Option) (*Mutex, error) {
	cfg, err := newConfig(mutexName, c, path, opts)
	if err != nil {
		return nil, err
	}
	return &Mutex{queueLock{
		owners: ownersOf(c),
		queue: &waitqueue.Queue{
			Client: c, Dir: path, Kinds: []string{mutexKind}, ACL: cfg.acl,
			Predecessor: waitqueue.ExclusivePredecessor, OnPosition: cfg.position,
		},
		kind: mutexKind,
		path: path,
		full: c.AbsolutePath(path),
		cfg:  cfg,
		tel:  telemetry.Of(c, telemetry.TypeMutex, cfg.name, c.AbsolutePath(path)),
	}}, nil
}

// Lock waits until the caller has the mutex and returns a lease of it. An owner
// that has it already gets a further lease at once. ctx bounds the wait only;
// if it ends first, the error wraps ctx's error, and the attempt's znode is gone or its
// deletion goes on in the background. Should the session end while Lock waits,
// it queues again in the next one. Other errors are those of the client, when its policy
// is exhausted: see package framework.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) {
	l, err := m.queueLock.acquire(ctx, callerOf(ctx), false)
	return l, callError(ctx, "lock", m.queueLock.path, err)
}

// TryLock makes one attempt and returns a lease, or [ErrHeld] where another owner
// has the mutex or stands in the queue. It never waits for another holder; ctx bounds
// its requests. Where somebody can be seen in the queue it writes nothing.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	l, err := m.queueLock.acquire(ctx, callerOf(ctx), true)
	return l, callError(ctx, "try lock", m.queueLock.path, err)
}

// Unlock releases the latest lease of the caller, as [Lease.Release] does. It
// returns [ErrNotOwner] if the caller has none, and a [*LostError] if it has only
// lost ones.
func (m *Mutex) Unlock(ctx context.Context) error {
	return m.queueLock.unlock(ctx, "unlock")
}

// Held returns the caller's lock count: how many leases it has that are neither
// released nor lost.
func (m *Mutex) Held(ctx context.Context) int { return m.queueLock.held(ctx) }

// Participants returns the mutex's holder and those who wait for it, in the order
// of the queue; none if nobody is there. The list is a snapshot of a moment that has passed.
func (m *Mutex) Participants(ctx context.Context) ([]Participant, error) {
	found, err := contender.Participants(cause.Inside(ctx), m.queueLock.queue)
	return found, callError(ctx, "participants of", m.queueLock.path, err)
}

// Path returns the mutex's path.
func (m *Mutex) Path() string { return m.queueLock.path }
