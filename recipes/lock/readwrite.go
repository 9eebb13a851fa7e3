package lock

import (
	"context"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// An RWMutex is a fair, reentrant lock with two sides: any number of owners may hold the read side,
// or one owner the write side. It is Curator's InterProcessReadWriteLock and can share a path with
// it. Both sides share one queue, so neither starves: readers and writers behind a waiting writer
// wait.
//
// An owner that holds the write side gets the read side at once, and keeps it when it releases the
// write side. No other writer is granted in between. The reverse is impossible, and refused with
// [ErrUpgrade].
//
// See the package's sections on holding and losing a lock, and on reentrancy.
type RWMutex struct{ read, write Side } // immutable

// The part of a znode's name before the number.
const (
	readKind  = queuenode.ReadKind
	writeKind = queuenode.WriteKind
)

// NewRWMutex returns the read/write lock at path and sends nothing yet. The path is the directory
// of the contenders' znodes. The directory and its parents are created as containers when they are
// needed. Two RWMutex values with one client and one path are the same lock, and agree on its
// owners. If arguments are faulty, NewRWMutex returns all faults.
func NewRWMutex(c *framework.Client, path string, opts ...Option) (*RWMutex, error) {
	cfg, err := newConfig("read/write lock", c, path, opts)
	if err != nil {
		return nil, err
	}
	queue := &waitqueue.Queue{
		Client: c, Dir: path, Kinds: []string{writeKind, readKind}, ACL: cfg.ACL, MayReplace: writerMayReplace,
		Predecessor: queuenode.SharedPredecessor(writeKind), OnPosition: cfg.QueuePosition, OnLongWait: logLongWait(c, path),
	}
	read := newQueueLock(queue, cfg, readKind, telemetry.TypeRead)
	write := newQueueLock(queue, cfg, writeKind, telemetry.TypeWrite)
	read.other, write.other = writeKind, readKind
	return &RWMutex{read: Side{queueLock: read, name: "read"}, write: Side{queueLock: write, name: "write"}}, nil
}

// writerMayReplace reports whether a new node may have taken the place of gone, ahead of waiting. A
// downgrade creates a read node with the number of the write node. The read node may remain when
// the write node is deleted, so a writer behind it has to list again. A reader behind it need not,
// because readers share the lock. No write node is created like that.
func writerMayReplace(gone, waiting queuenode.Node) bool {
	return gone.Kind == writeKind && waiting.Kind == writeKind
}

// Read returns the side that several owners may hold.
func (rw *RWMutex) Read() *Side { return &rw.read }

// Write returns the side that one owner holds alone.
func (rw *RWMutex) Write() *Side { return &rw.write }

// Participants returns the holders and waiters of both sides, in the order of the queue, or none if
// the queue is empty. The list is a snapshot of a moment that has passed.
func (rw *RWMutex) Participants(ctx context.Context) ([]Participant, error) {
	found, err := contender.Participants(ctx, rw.read.queueLock.queue)
	return found, recipe.CallError(ctx, rw.read.queueLock.queue.Client, "participants of", rw.Path(), err)
}

// Path returns the lock's path.
func (rw *RWMutex) Path() string { return rw.read.queueLock.path }

// A Side is one of the two ways to hold an [RWMutex], and a [Locker]. Its methods may be called
// concurrently.
type Side struct {
	queueLock queueLock // immutable
	name      string    // immutable; "read" or "write"
}

// Lock waits until the caller holds this side of the lock and returns a lease of it. An owner that
// holds the side already, or holds the write side and asks for the read side, gets the lease at
// once. An owner that holds only the read side and asks for the write side gets [ErrUpgrade] at
// once.
//
// ctx bounds the wait only. If ctx ends first, the error is a [*WaitError] that wraps ctx's error.
// The attempt's znode is then gone, or its deletion continues in the background. If the session
// ends while Lock waits, Lock queues again in the next session. Other errors are the client's, when
// its retry policy is exhausted: see package framework.
//
// Goroutines of one [Owner] acquire one at a time: while one of them waits for one side, another
// that asks for the other side waits for the outcome.
func (s *Side) Lock(ctx context.Context) (*Lease, error) {
	l, err := s.queueLock.acquire(ctx, callerOf(ctx), false)
	return l, s.callError(ctx, "lock", err)
}

// TryLock makes one attempt and returns a lease. It returns [ErrHeld] if it would have to wait for
// another owner, even for one that only waits, and [ErrUpgrade] as Lock does. It never waits for
// another holder; ctx and the connect timeout bound its requests: see [Locker]. If a listing shows a
// predecessor, and still does after a sync, it creates nothing.
func (s *Side) TryLock(ctx context.Context) (*Lease, error) {
	l, err := s.queueLock.acquire(ctx, callerOf(ctx), true)
	return l, s.callError(ctx, "try lock", err)
}

// Unlock releases the caller's latest lease of this side, as [lease.Lease.Release] does.
// It returns [ErrNotOwner] if the caller has none, and a [*LostError] if it has
// only lost ones.
func (s *Side) Unlock(ctx context.Context) error {
	return s.queueLock.unlock(ctx, "unlock "+s.name+" side of")
}

// Held returns the caller's lock count of this side: the number of its leases that are neither
// released nor lost.
func (s *Side) Held(ctx context.Context) int { return s.queueLock.held(ctx) }

// Participants returns the holders and waiters of this side, in the order of the queue, or none.
// [RWMutex.Participants] has both sides'. The list is a snapshot of a moment that has passed.
func (s *Side) Participants(ctx context.Context) ([]Participant, error) {
	found, err := contender.Participants(ctx, s.queueLock.queue)
	if err != nil {
		return nil, s.callError(ctx, "participants", err)
	}
	return slices.DeleteFunc(found, func(p Participant) bool { return p.Kind != s.queueLock.kind }), nil
}

// Path returns the lock's path.
func (s *Side) Path() string { return s.queueLock.path }

func (s *Side) callError(ctx context.Context, op string, err error) error {
	return recipe.CallError(ctx, s.queueLock.queue.Client, op+" "+s.name+" side of", s.queueLock.path, err)
}
