package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
)

// endedBy says what a context that has ended may have for a cause: errors that other
// work came to, as errgroup passes them on, and lost leases of other clients.
var endedBy = map[string]error{
	"the end of another session":       framework.ErrSessionExpired,
	"a lease that was lost":            &lock.LostError{Path: "/other", Cause: framework.ErrSessionDeadline},
	"another client that was closed":   framework.ErrClosed,
	"a znode missing somewhere else":   framework.ErrNoNode,
	"a znode existing somewhere else":  framework.ErrNodeExists,
	"a connection missing somewhere":   framework.ErrNotConnected,
	"an outcome unknown somewhere":     framework.ErrUnknownOutcome,
	"another lock that is held":        lock.ErrHeld,
	"a cancellation and nothing else":  nil,
	"a lease that was released before": lock.ErrReleased,
}

// A context that ends while Lock waits has Lock leave the queue, whatever the
// cause looks like.
func TestNoOrphan_with_any_cause_of_the_context(t *testing.T) {
	t.Parallel()
	for name, cause := range endedBy {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const path = "/attack/cause"
				srv := virtualServer(t)
				held := mustLock(t, newMutex(t, virtualClient(t, srv), path))
				ctx, cancel := context.WithCancelCause(t.Context())
				done := lockLater(ctx, newMutex(t, virtualClient(t, srv), path))
				synctest.Wait()
				if n := len(znodesBelow(srv, path)); n != 2 {
					t.Fatalf("%d contenders, want 2", n)
				}
				cancel(cause)
				got := must.Receive(t, done, "Lock's return")
				if !errors.Is(got.err, context.Canceled) || cause != nil && !errors.Is(got.err, cause) {
					t.Errorf("Lock: %v, want an error that matches context.Canceled and the cause", got.err)
				}
				await(time.Minute)
				if left := znodesBelow(srv, path); len(left) != 1 {
					t.Errorf("a minute after Lock returned there are %q, want the holder alone", left)
				}
				mustRelease(t, held)
			})
		})
	}
}

// The same for a Release whose context ends, or has ended.
func TestReleaseIsDoneWhateverTheContextsCause(t *testing.T) {
	t.Parallel()
	for name, cause := range endedBy {
		for _, early := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, before=%v", name, early), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const path = "/attack/release"
					srv := virtualServer(t)
					lease := mustLock(t, newMutex(t, virtualClient(t, srv), path))
					ctx, cancel := context.WithCancelCause(t.Context())
					if early {
						cancel(cause)
					} else {
						cut := srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: fault.CutBefore})
						srv.Refuse()
						go func() {
							<-cut.Hit()
							cancel(cause)
						}()
					}
					err := lease.Release(ctx)
					if !errors.Is(err, context.Canceled) || isLoss(err) && !isLoss(cause) {
						t.Errorf("Release: %v, want an error that matches context.Canceled and is no loss", err)
					}
					srv.Accept()
					await(time.Minute)
					if left := znodesBelow(srv, path); len(left) != 0 {
						t.Errorf("a minute after Release returned there are %q, want none", left)
					}
				})
			})
		}
	}
}

// isLoss reports whether err tells of a lost lease.
func isLoss(err error) bool { return errors.Is(err, lock.ErrLost) }

// A shortLivedError matches its target n times. So a loop that continues while it matches ends,
// and the test sees that it continued.
type shortLivedError struct {
	target error
	asked  atomic.Int64
}

const patience = 10_000

func (e *shortLivedError) Error() string { return e.target.Error() }

func (e *shortLivedError) Is(target error) bool {
	return target == e.target && e.asked.Add(1) < patience
}

// A TryLock whose context ends returns, whatever the cause looks like. Nested in
// another lock, the cause is the end of the outer one's session.
func TestTryLockReturnsWhateverTheContextsCause(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		for _, target := range []error{framework.ErrSessionEnded, framework.ErrNodeExists, framework.ErrNoNode, framework.ErrUnknownOutcome} {
			for _, try := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%v/try=%v", k.name, target, try), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := virtualServer(t)
						l := k.lock(t, virtualClient(t, srv), "/attack/try")
						srv.Refuse()
						srv.Cut()
						synctest.Wait()
						ctx, cancel := context.WithCancelCause(t.Context())
						cause := &shortLivedError{target: target}
						time.AfterFunc(time.Second, func() { cancel(cause) })
						if try {
							l = tryLock{l}
						}
						lease, err := l.Lock(ctx)
						if lease != nil || !errors.Is(err, context.Canceled) || errors.Is(err, lock.ErrHeld) {
							t.Errorf("%v, %v; want no lease and an error that matches context.Canceled", lease, err)
						}
						if n := cause.asked.Load(); n >= patience {
							t.Errorf("went round and round: the cause was looked at %d times", n)
						}
						srv.Accept()
					})
				})
			}
		}
	}
}

// Every read answers with the context's error once that has ended.
func TestEndedContext_with_any_cause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		must.Get(c.Create(t.Context(), "/there", nil))(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(framework.ErrNoNode)
		check := func(what string, err error) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want an error that matches context.Canceled", what, err)
			}
		}
		_, _, err := c.Exists(ctx, "/there")
		check("Exists", err)
		check("Delete of what need not be there", c.Delete(ctx, "/there", framework.Idempotent()))
		w, err := c.Watch(ctx, "/there", framework.WatchExists)
		if w != nil {
			w.Close()
		}
		check("Watch", err)
		m := newMutex(t, c, "/there")
		_, err = m.Participants(ctx)
		check("Participants", err)
	})
}

// If the reply to a create was lost, its znode is searched and deleted. Here the context ends in
// the middle of that, with a cause that looks like the answer.
func TestNoOrphan_when_the_search_ends_by_a_cause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/attack/search"
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		mustRelease(t, mustLock(t, newMutex(t, c, path)))
		srv.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.DropReply})
		syncing := srv.Rules().Add(fault.Rule{Op: fault.Sync, Path: path, Action: fault.HoldRequest})
		ctx, cancel := context.WithCancelCause(t.Context())
		done := lockLater(ctx, newMutex(t, c, path))
		<-syncing.Hit()
		listing := srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: path, Action: fault.HoldReply})
		syncing.Release()
		<-listing.Hit()
		cancel(framework.ErrNoNode)
		if got := must.Receive(t, done, "Lock's return"); !errors.Is(got.err, context.Canceled) {
			t.Errorf("Lock: %v, want an error that matches context.Canceled", got.err)
		}
		listing.Release()
		await(time.Minute)
		if left := znodesBelow(srv, path); len(left) != 0 {
			t.Errorf("left behind: %q", left)
		}
	})
}

// A Release that has lost one reply, and ends by its context before the next, knows
// nothing, whatever the cause looks like.
func TestRelease_with_a_cause_like_an_answer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/attack/doubt"
		srv := virtualServer(t)
		lease := mustLock(t, newMutex(t, virtualClient(t, srv), path))
		srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: fault.CutBefore})
		held := srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: fault.HoldRequest})
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-held.Hit()
			cancel(framework.ErrNoNode)
		}()
		if err := lease.Release(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Release: %v, want an error that matches context.Canceled", err)
		}
		held.Remove()
		srv.Cut()
		await(time.Minute)
		if left := znodesBelow(srv, path); len(left) != 0 {
			t.Errorf("left behind: %q", left)
		}
	})
}
