package lock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestHandOffAsksNothing has holders release one after another, and counts what
// the waiters ask between the end of one lease and the next grant.
func TestHandOffAsksNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		clients, waiters int
		list             int // in all of a drain, none of which the next holder waits for
	}{
		"one waiter":                               {clients: 2, waiters: 1},
		"many waiters of one session":              {clients: 1, waiters: 8, list: 7},
		"waiters of two sessions in turn":          {clients: 2, waiters: 8, list: 7},
		"waiters that know nothing of one another": {clients: 6, waiters: 5, list: 4},
	}
	for name, tt := range tests {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			const path = "/handoff/mutex"
			var clients []*framework.Client
			for range tt.clients {
				clients = append(clients, virtualClient(t, srv))
			}
			held := mustLock(t, newMutex(t, clients[0], path))
			var queued []<-chan result
			for i := range tt.waiters {
				m := newMutex(t, clients[(i+1)%len(clients)], path)
				queued = append(queued, lockLater(t.Context(), m))
				synctest.Wait()
			}
			list := srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Action: fault.Pass, Times: fault.Forever})
			for i, next := range queued {
				// All later requests take a minute to be answered.
				slow := srv.Rules().Add(fault.Rule{
					Op: fault.GetChildren, Action: fault.DelayReply, Delay: time.Minute, Times: fault.Forever,
				})
				mustRelease(t, held)
				synctest.Wait()
				if len(next) == 0 {
					t.Fatalf("waiter %d was not granted by the end of the lease alone", i)
				}
				held = granted(t, next, "the next grant")
				slow.Release()
				synctest.Wait()
			}
			mustRelease(t, held)
			if n := list.Hits(); n > tt.list {
				t.Errorf("%d listings, want at most %d", n, tt.list)
			}
		})
	}
}

// TestHandOffWhenAnOperatorDeletesBoth takes the waiter's znode away together with
// the holder's, in either order: it has no place any more.
func TestHandOffWhenAnOperatorDeletesBoth(t *testing.T) {
	t.Parallel()
	for _, ownFirst := range []bool{true, false} {
		for _, together := range []bool{true, false} {
			virtualSubtest(t, fmt.Sprintf("own first %v, together %v", ownFirst, together), func(t *testing.T, srv *zkserver.Server) {
				const path = "/handoff/operator"
				operator := virtualClient(t, srv)
				held := mustLock(t, newMutex(t, virtualClient(t, srv), path))
				waiter := newMutex(t, virtualClient(t, srv), path)
				done := lockLater(t.Context(), waiter)
				synctest.Wait()
				found, err := waiter.Participants(t.Context())
				if err != nil || len(found) != 2 {
					t.Fatal(found, err)
				}
				deletes := []framework.TxnOp{
					framework.OpDelete(found[0].Path, framework.AnyVersion), framework.OpDelete(found[1].Path, framework.AnyVersion),
				}
				if ownFirst {
					deletes[0], deletes[1] = deletes[1], deletes[0]
				}
				if together {
					_, err = operator.Txn(t.Context(), deletes...)
				} else {
					for _, op := range deletes {
						_, err = operator.Txn(t.Context(), op)
					}
				}
				must.OK(t, err)
				synctest.Wait()
				lease := granted(t, done, "the waiter")
				// It was granted by a new znode, or before it was notified of the end of its
				// own znode. Both equal an end a moment after the grant.
				_, exists := must.Get2(operator.Exists(t.Context(), lease.Node()))(t)
				if err := lease.Err(); exists != (err == nil) || !exists && !errors.Is(err, lock.ErrNodeDeleted) {
					t.Errorf("the lease's znode stands: %v; the lease: %v", exists, err)
				}
				if ownFirst && !exists {
					t.Error("granted though the end of the own znode was heard of before")
				}
				_ = lease.Release(t.Context())
				<-held.Lost()
				_ = held.Release(t.Context())
			})
		}
	}
}

// TestHandOffOnALaggingFollower delays all of the waiter's events, in their order.
func TestHandOffOnALaggingFollower(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/handoff/lagging"
		operator, holder, c := atFrontend(t, srv, 0), atFrontend(t, srv, 1), atFrontend(t, srv, 2)
		held := mustLock(t, newMutex(t, holder, path))
		waiter := newMutex(t, c, path)
		done := lockLater(t.Context(), waiter)
		synctest.Wait()
		found, err := newMutex(t, operator, path).Participants(t.Context())
		if err != nil || len(found) != 2 {
			t.Fatal(found, err)
		}
		srv.Frontend(2).LagBy(200 * time.Millisecond)
		must.OK(t, operator.Delete(t.Context(), found[1].Path))
		mustRelease(t, held)
		next := mustLock(t, newMutex(t, holder, path))
		select {
		case got := <-done:
			t.Fatalf("granted without a place: %+v", got)
		case <-time.After(time.Second):
		}
		mustRelease(t, next)
		mustRelease(t, granted(t, done, "the grant"))
		srv.Frontend(2).CatchUp()
	}, zkserver.WithFrontends(3))
}

// TestHandOffWhenTheConnectionIsLost notifies a waiter of its predecessor's deletion while the
// waiter is busy, and then breaks its connection. The watch on its own znode has not fired, but is
// not valid: an operator deletes that znode, and another client is granted the lock.
func TestHandOffWhenTheConnectionIsLost(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		path := anyPath("/hand-off/severed")
		others, c := atFrontend(t, srv, 0), atFrontend(t, srv, 1)
		first := mustLock(t, newMutex(t, others, path))
		second := lockLater(asOwner(t, "second"), newMutex(t, others, path))
		synctest.Wait()
		var once sync.Once
		busy, goOn := make(chan struct{}), make(chan struct{})
		waiter := lockLater(t.Context(), newMutex(t, c, path, recipes.WithQueuePosition(func(position int) {
			if position == 1 {
				once.Do(func() { close(busy) })
				<-goOn
			}
		})))
		synctest.Wait()
		mustRelease(t, first)
		<-busy
		mustRelease(t, granted(t, second, "the predecessor"))
		synctest.Wait()
		srv.Frontend(1).Refuse()
		srv.Frontend(1).Cut()
		synctest.Wait() // the waiter's client has seen it
		deleteNode(t, others, path+"/"+contenders(t, others, path)[0])
		third := mustLock(t, newMutex(t, others, path))
		close(goOn)
		await(time.Second)
		if len(waiter) > 0 {
			t.Errorf("granted beside another holder: %+v", <-waiter)
		}
		srv.Frontend(1).Accept()
		mustRelease(t, third)
		mustRelease(t, granted(t, waiter, "the waiter"))
	}, zkserver.WithFrontends(2))
}

// TestAWaiterIsNotifiedOfItsPredecessorsGrant: it is behind the holder then, whatever it was before.
func TestAWaiterIsNotifiedOfItsPredecessorsGrant(t *testing.T) {
	const path = "/drain/position"
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		held := mustLock(t, newMutex(t, c, path))
		first := lockLater(t.Context(), newMutex(t, c, path))
		synctest.Wait()
		var positions []int
		last := lockLater(t.Context(), newMutex(t, c, path, recipes.WithQueuePosition(func(ahead int) {
			positions = append(positions, ahead)
		})))
		synctest.Wait()
		lists := countListings(srv, path)
		mustRelease(t, held)
		lease := granted(t, first, "the first waiter's grant")
		synctest.Wait()
		mustRelease(t, lease)
		mustRelease(t, granted(t, last, "the last waiter's grant"))
		if got, want := fmt.Sprint(positions), "[2 1 0]"; got != want {
			t.Errorf("positions %v, want %v", got, want)
		}
		if n := lists(); n != 0 {
			t.Errorf("%d listings, want none", n)
		}
	})
}

// bySequence compares the paths of contenders by the number that the server gave.
func bySequence(a, b string) int { return cmp.Compare(a[len(a)-10:], b[len(b)-10:]) }

// TestPredecessorThatEndsIsNoGrant: the holder is still ahead, so the waiter behind must list.
func TestPredecessorThatEndsIsNoGrant(t *testing.T) {
	t.Parallel()
	type predecessor struct {
		client *framework.Client
		cancel context.CancelFunc
		node   string
	}
	for name, tt := range map[string]struct {
		alone bool // in its session
		end   func(t *testing.T, p predecessor, operator *framework.Client)
		want  error // of its Lock; nil if it queues again
	}{
		"it withdraws": {false, func(_ *testing.T, p predecessor, _ *framework.Client) { p.cancel() }, context.Canceled},
		"its client is closed": {true, func(t *testing.T, p predecessor, _ *framework.Client) {
			must.OK(t, p.client.Close())
		}, framework.ErrClosed},
		"an operator deletes its znode": {false, func(t *testing.T, p predecessor, operator *framework.Client) {
			deleteNode(t, operator, p.node)
		}, nil},
	} {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			const path = "/drain/middle"
			operator, c := virtualClient(t, srv), virtualClient(t, srv)
			behind := c
			if tt.alone {
				behind = virtualClient(t, srv)
			}
			held := mustLock(t, newMutex(t, operator, path))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first := lockLater(ctx, newMutex(t, c, path))
			synctest.Wait()
			middle := slices.MaxFunc(znodesBelow(srv, path), bySequence)
			last := lockLater(t.Context(), newMutex(t, behind, path))
			synctest.Wait()
			tt.end(t, predecessor{c, cancel, middle}, operator)
			synctest.Wait()
			if tt.want != nil {
				wantErr(t, "the predecessor", failed(t, first, "the end of its wait"), tt.want)
			} else {
				mustWaitStill(t, "the predecessor", first)
			}
			mustWaitStill(t, "the last", last)
			mustRelease(t, held)
			mustRelease(t, granted(t, last, "the last one's grant"))
			if tt.want == nil {
				mustRelease(t, granted(t, first, "the grant of who queued again"))
			}
		})
	}
}
