package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// A localTest is a Local of one client in a bubble, and a mutex of another at its path.
type localTest struct {
	*testing.T
	srv   *zkserver.Server
	c     *framework.Client
	local *lock.Local
	other *lock.Mutex
}

func inLocalTest(t *testing.T, max int, test func(localTest), opts ...lock.Option) {
	t.Helper()
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/local"
		c := virtualClient(t, srv)
		local := newLocal(t, newMutex(t, c, path, opts...), max)
		test(localTest{t, srv, c, local, newMutex(t, virtualClient(t, srv), path)})
	})
}

// lineUp has n calls wait for l, in that order.
func (t localTest) lineUp(n int, l lock.Locker) []<-chan result {
	var queued []<-chan result
	for range n {
		queued = append(queued, lockLater(t.Context(), l))
		synctest.Wait()
	}
	return queued
}

// granted returns the lease that the call was granted by now.
func (t localTest) granted(done <-chan result) *lock.Lease {
	t.Helper()
	synctest.Wait()
	if len(done) == 0 {
		t.Fatal("the call still waits")
	}
	return granted(t, done, "the call")
}

func (t localTest) mustWait(done <-chan result) {
	t.Helper()
	synctest.Wait()
	mustWaitStill(t, "a call that has to wait", done)
}

func TestLocalHandsOnInOrderWithoutARequest(t *testing.T) {
	inLocalTest(t, 2, func(t localTest) {
		held := mustLock(t, t.local)
		queued := t.lineUp(3, t.local)
		elsewhere := lockLater(t.Context(), t.other)
		synctest.Wait()
		t.srv.Refuse() // nothing can be asked of the server
		t.srv.Cut()
		for _, next := range queued[:2] {
			mustRelease(t, held)
			before := held
			held = t.granted(next)
			if held.Node() != before.Node() || held.Fence() != before.Fence() {
				t.Errorf("handed on with node %s, fence %d; want %s, %d", held.Node(), held.Fence(), before.Node(), before.Fence())
			}
			wantErr(t, "lease that was handed on", before.Err(), lock.ErrReleased)
		}
		t.srv.Accept()
		must.OK(t, t.c.AwaitConnected(t.Context()))
		fence := held.Fence()
		mustRelease(t, held) // handed on twice by now: it is the other client's turn
		t.mustWait(queued[2])
		theirs := granted(t, elsewhere, "the other client's turn") // once that client is connected again
		mustRelease(t, theirs)
		last := granted(t, queued[2], "the turn after that")
		if theirs.Fence() <= fence || last.Fence() <= theirs.Fence() {
			t.Errorf("fences %d, %d, %d; must grow", fence, theirs.Fence(), last.Fence())
		}
		mustRelease(t, last)
	})
}

// TestLocalHandsOnNoLostLease has the lease of a Local lost, with its session or to an operator: the calls that wait
// are granted another one.
func TestLocalHandsOnNoLostLease(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose func(t localTest, held *lock.Lease)
		want error
	}{
		"the session ends": {func(t localTest, held *lock.Lease) {
			must.OK(t, t.srv.Expire(t.c.Session().ID))
			<-held.Lost()
		}, lock.ErrLost},
		"an operator deletes its znode": {func(t localTest, held *lock.Lease) {
			await(time.Second) // the znode is watched by now
			deleteNode(t, t.c, held.Node())
		}, lock.ErrNodeDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			inLocalTest(t, 5, func(t localTest) {
				held := mustLock(t, t.local)
				queued := t.lineUp(2, t.local)
				tt.lose(t, held)
				wantErr(t, "Release", held.Release(t.Context()), tt.want)
				first := t.granted(queued[0])
				if err := first.Err(); err != nil || first.Node() == held.Node() {
					t.Errorf("lease %v of %s after the loss of %s", err, first.Node(), held.Node())
				}
				mustRelease(t, first)
				mustRelease(t, t.granted(queued[1]))
				mustRelease(t, mustLock(t, t.other))
			})
		})
	}
}

func TestLocalDoesNotHandOnWhatAnotherClientAsksFor(t *testing.T) {
	asked := make(chan struct{}, 1)
	inLocalTest(t, 5, func(t localTest) {
		held := mustLock(t, t.local)
		queued := t.lineUp(1, t.local)
		theirs := lockLater(t.Context(), t.other)
		synctest.Wait()
		must.OK(t, lock.Revoke(t.Context(), t.c, held.Node()))
		<-asked
		mustRelease(t, held)
		mustRelease(t, t.granted(theirs))
		mustRelease(t, t.granted(queued[0]))
	}, recipes.WithRevocation(func(*lock.Lease) { asked <- struct{}{} }))
}

// TestLocalWaiterThatLeaves ends the wait for a call of the same Local, also in an outage. The successor has its
// turn nevertheless.
func TestLocalWaiterThatLeaves(t *testing.T) {
	inLocalTest(t, 3, func(t localTest) {
		mustRelease(t, mustLock(t, t.local))
		held := mustLock(t, t.local)
		queued := t.lineUp(1, t.local)
		for _, connected := range []bool{true, false} {
			if !connected {
				t.srv.Refuse()
				t.srv.Cut()
			}
			brief := recipetest.Within(t, time.Second)
			gone := lockLater(brief, t.local)
			behind := t.lineUp(1, t.local)
			err := failed(t, gone, "the end of the wait")
			var wait *lock.WaitError
			if !errors.As(err, &wait) || errors.Is(err, framework.ErrNotConnected) == connected {
				t.Errorf("Lock: %v; connected %v", err, connected)
			}
			wantErr(t, "Lock", err, context.DeadlineExceeded)
			wantErr(t, "Lock with a context that has ended", errOf(t.local.Lock(brief)), context.DeadlineExceeded)
			queued = append(queued, behind...)
		}
		t.srv.Accept()
		must.OK(t, t.c.AwaitConnected(t.Context()))
		_ = held.Release(t.Context()) // it may have been lost
		for _, next := range queued {
			mustRelease(t, granted(t.T, next, "the next in line"))
		}
		mustRelease(t, mustLock(t, t.other))
	})
}

// TestLocalIsAskedBetweenTwoLeases requests the release at each moment of a hand-off: the request reaches
// the holder before, or the one after.
func TestLocalIsAskedBetweenTwoLeases(t *testing.T) {
	asked := make(chan *lock.Lease, 1)
	inLocalTest(t, 1000, func(t localTest) {
		const rounds = 200
		queued := t.lineUp(rounds, t.local)
		held := t.granted(queued[0])
		await(time.Second)
		for _, next := range queued[1:] {
			node := held.Node()
			done := make(chan error, 1)
			go func() { done <- lock.Revoke(t.Context(), t.c, node) }()
			go mustRelease(t.T, held)
			must.OK(t, <-done)
			synctest.Wait()
			select {
			case <-asked:
			default:
				if got, _, err := t.c.Exists(t.Context(), node); err == nil && got.Czxid != 0 {
					t.Fatal("the request was dropped, although the znode exists")
				}
			}
			held = t.granted(next)
			await(time.Second)
		}
		mustRelease(t, held)
	}, recipes.WithRevocation(func(l *lock.Lease) { asked <- l }))
}
