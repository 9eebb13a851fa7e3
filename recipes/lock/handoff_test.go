package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const path = "/handoff/mutex"
				srv := virtualServer(t)
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
					select {
					case got := <-next:
						if got.err != nil {
							t.Fatal(got.err)
						}
						held = got.lease
					default:
						t.Fatalf("waiter %d was not granted by the end of the lease alone", i)
					}
					slow.Release()
					synctest.Wait()
				}
				mustRelease(t, held)
				if n := list.Hits(); n > tt.list {
					t.Errorf("%d listings, want at most %d", n, tt.list)
				}
			})
		})
	}
}

// TestHandOffWhenAnOperatorDeletesBoth takes the waiter's znode away together with
// the holder's, in either order: it has no place any more.
func TestHandOffWhenAnOperatorDeletesBoth(t *testing.T) {
	t.Parallel()
	for _, ownFirst := range []bool{true, false} {
		for _, together := range []bool{true, false} {
			t.Run(fmt.Sprintf("own first %v, together %v", ownFirst, together), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const path = "/handoff/operator"
					srv := virtualServer(t)
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
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					got := <-done
					if got.err != nil {
						t.Fatal(got.err)
					}
					// It was granted by a new znode, or before it was notified of the end of its
					// own znode. Both equal an end a moment after the grant.
					_, stands, err := operator.Exists(t.Context(), got.lease.Node())
					if err != nil {
						t.Fatal(err)
					}
					if err := got.lease.Err(); stands != (err == nil) || !stands && !errors.Is(err, lock.ErrNodeDeleted) {
						t.Errorf("the lease's znode stands: %v; the lease: %v", stands, err)
					}
					if ownFirst && !stands {
						t.Error("granted though the end of the own znode was heard of before")
					}
					_ = got.lease.Release(t.Context())
					<-held.Lost()
					_ = held.Release(t.Context())
				})
			})
		}
	}
}

// TestHandOffWhenTheEventComesLate delays the event that tells of the holder's
// end, or cuts the connection in its place.
func TestHandOffWhenTheEventComesLate(t *testing.T) {
	t.Parallel()
	for _, rule := range []fault.Rule{
		{Op: fault.Event, Action: fault.DelayReply, Delay: time.Second},
		{Op: fault.Event, Action: fault.CutBefore},
	} {
		t.Run(rule.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const path = "/handoff/late"
				srv := virtualServer(t)
				held := mustLock(t, newMutex(t, virtualClient(t, srv), path))
				c := virtualClient(t, srv)
				done := lockLater(t.Context(), newMutex(t, c, path))
				synctest.Wait()
				rule.Session = c.Session().ID
				srv.Rules().Add(rule)
				mustRelease(t, held)
				got := must.Receive(t, done, "the grant")
				if got.err != nil {
					t.Fatal(got.err)
				}
				if err := got.lease.Err(); err != nil {
					t.Error(err)
				}
				mustRelease(t, got.lease)
			})
		})
	}
}

// TestHandOffAtTheEndOfTheSession has the waiter's connection die without a word and
// the holder release at moments around the end of the waiter's session. Whether
// it is granted or not: no two hold the lock at once.
func TestHandOffAtTheEndOfTheSession(t *testing.T) {
	t.Parallel()
	const session, step = 4 * time.Second, 100 * time.Millisecond
	for moment := time.Duration(0); moment < session+time.Second; moment += step {
		synctest.Test(t, func(t *testing.T) {
			const path = "/handoff/session"
			srv := virtualServer(t)
			held := mustLock(t, newMutex(t, virtualClient(t, srv), path))
			route := &connection{srv: srv, conns: map[*lineConn]struct{}{}}
			c := newClient(t, srv.Addr(), framework.WithDialer(route.dial), framework.WithSessionTimeout(session))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first := lockLater(ctx, newMutex(t, c, path))
			synctest.Wait()
			second := lockLater(t.Context(), newMutex(t, virtualClient(t, srv), path))
			synctest.Wait()
			route.set(true, true)
			lostAt := make(chan time.Time, 1)
			go func() {
				defer close(lostAt)
				if got := <-first; got.err == nil {
					<-got.lease.Lost()
					lostAt <- time.Now()
				}
			}()
			await(moment)
			mustRelease(t, held)
			got := <-second
			if got.err != nil {
				t.Fatal(got.err)
			}
			cancel()
			if lost, granted := <-lostAt; granted && !lost.Before(got.at) {
				t.Errorf("released after %v: lost %v after the next was granted", moment, lost.Sub(got.at))
			}
			mustRelease(t, got.lease)
			route.set(false, false)
			route.cut()
		})
	}
}

// TestHandOffOnALaggingFollower delays all of the waiter's events, in their order.
func TestHandOffOnALaggingFollower(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/handoff/lagging"
		srv := virtualServer(t, zkserver.WithFrontends(3))
		at := func(i int) *framework.Client {
			return newClient(t, srv.Frontend(i).Addr(), framework.WithDialer(srv.Dial))
		}
		operator, holder, c := at(0), at(1), at(2)
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
	})
}

// TestHandOffWhereTheCounterWraps has a server whose numbers go on with negative ones.
func TestHandOffWhereTheCounterWraps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/handoff/wraps"
		srv := virtualServer(t, zkserver.WithSequenceWrap())
		c := virtualClient(t, srv)
		must.Get(c.Create(t.Context(), path, nil, framework.WithParents()))(t)
		must.OK(t, srv.SetNextSequence(path, math.MaxInt32-2))
		held := mustLock(t, newMutex(t, c, path))
		var queued []<-chan result
		for range 6 {
			queued = append(queued, lockLater(t.Context(), newMutex(t, virtualClient(t, srv), path)))
			synctest.Wait()
		}
		for i, next := range queued {
			mustRelease(t, held)
			got := must.Receive(t, next, fmt.Sprint("the grant to ", i))
			if got.err != nil {
				t.Fatal(got.err)
			}
			held = got.lease
		}
		mustRelease(t, held)
	})
}

// TestHandOffBehindADowngrade has a writer take the read side as Curator's do, by a
// znode of its own number, while another writer and a reader wait.
func TestHandOffBehindADowngrade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/handoff/downgrade"
		srv := virtualServer(t)
		curator := virtualClient(t, srv)
		create := func(name string, more ...framework.CreateOption) string {
			t.Helper()
			node := must.Get(curator.Create(t.Context(), path+"/"+name, nil,
				append(more, framework.Ephemeral(), framework.Protected(), framework.WithParents())...))(t)
			return node
		}
		writing := create("__WRIT__", framework.Sequential())
		c := virtualClient(t, srv)
		rw := newReadWrite(t, c, path)
		reader := lockLater(t.Context(), rw.Read())
		synctest.Wait()
		writer := lockLater(t.Context(), newReadWrite(t, virtualClient(t, srv), path).Write())
		synctest.Wait()
		first := lockLater(t.Context(), newReadWrite(t, virtualClient(t, srv), path).Write())
		_ = first
		synctest.Wait()
		reading := create("__READ__" + digits(writing))
		must.OK(t, curator.Delete(t.Context(), writing))
		mustRelease(t, must.Receive(t, reader, "the reader behind").lease)
		synctest.Wait()
		select {
		case got := <-writer:
			t.Fatalf("a writer is granted beside a reader: %+v", got)
		default:
		}
		must.OK(t, curator.Delete(t.Context(), reading))
		mustRelease(t, must.Receive(t, writer, "the writer").lease)
		mustRelease(t, must.Receive(t, first, "the next writer").lease)
	})
}
