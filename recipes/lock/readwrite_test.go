package lock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestTheSidesOfOneOwnerAreUnlockedByThemselves, in any order.
func TestTheSidesOfOneOwnerAreUnlockedByThemselves(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		rw := newReadWrite(t, virtualClient(t, srv), "/rwowner/sides")
		owner := asOwner(t, "owner")
		for _, order := range [][2]*lock.Side{{rw.Read(), rw.Write()}, {rw.Write(), rw.Read()}} {
			mustLockAs(owner, t, rw.Write())
			mustLockAs(owner, t, rw.Read())
			for _, side := range order {
				wantErr(t, "unlock", side.Unlock(owner), nil)
				if n := side.Held(owner); n != 0 {
					t.Errorf("held %d times after its Unlock, want 0", n)
				}
				wantErr(t, "second Unlock", side.Unlock(owner), lock.ErrNotOwner)
			}
		}
	})
}

// TestWhoDiesInTheQueueIsPassed: Redisson issues 2278 and 3730, where the queue entries of dead
// clients blocked all others.
func TestWhoDiesInTheQueueIsPassed(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path := anyPath("/rwowner")
		c := env.Client(t)
		rw := newReadWrite(t, c, path)
		held := mustLockAs(asOwner(t, "reader"), t, rw.Read())
		dying, route := onRoute(t, env)
		ctx, cancel := context.WithCancel(asOwner(t, "dead"))
		dead := queueUp(ctx, t, newReadWrite(t, dying, path).Write(), c, path, 2)
		reader := queueUp(asOwner(t, "next"), t, rw.Read(), c, path, 3)
		mustWait(t, "everybody behind the reader", dead, reader)
		route.ExpireAndRefuse(t)
		mustRelease(t, granted(t, reader, "the reader behind the dead"))
		mustRelease(t, held)
		cancel()
		wantErr(t, "Lock", failed(t, dead, "the end of the dead one's Lock"), context.Canceled)
	}, oneOfEach())
}

// TestTheSidesAreLostOneByOneToAnOperator: CURATOR-171, where no holder noticed. A read node holds
// by itself: it was created while the write node existed.
func TestTheSidesAreLostOneByOneToAnOperator(t *testing.T) {
	t.Parallel()
	for _, lostSide := range []string{"write", "read"} {
		virtualSubtest(t, lostSide, func(t *testing.T, srv *zkserver.Server) {
			const path = "/rwloss/operator"
			c, operator := virtualClient(t, srv), virtualClient(t, srv)
			rw := newReadWrite(t, c, path)
			one := asOwner(t, "one")
			lost, kept := mustLockAs(one, t, rw.Write()), mustLockAs(one, t, rw.Read())
			if lostSide == "read" {
				lost, kept = kept, lost
			}
			writer := lockLater(t.Context(), newReadWrite(t, operator, path).Write())
			await(time.Second)
			deleteNode(t, operator, lost.Node())
			must.Receive(t, lost.Lost(), "the loss of the lease")
			wantErr(t, "lost lease", lost.Err(), lock.ErrNodeDeleted)
			await(time.Second)
			mustWaitStill(t, "the writer behind the other node", writer)
			wantErr(t, "the other lease", kept.Err(), nil)
			mustRelease(t, kept)
			mustRelease(t, granted(t, writer, "the writer behind"))
		})
	}
}

// TestUpgradeIsRefused for whoever has the read side, alone or after the write side, also to an owner whose other
// goroutine has it or gets it first.
func TestUpgradeIsRefused(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(ctx context.Context, t *testing.T, rw *lock.RWMutex) *lock.Lease{
		"whoever has the read side": func(ctx context.Context, t *testing.T, rw *lock.RWMutex) *lock.Lease {
			return mustLockAs(ctx, t, rw.Read())
		},
		"who had the write side and released it": func(ctx context.Context, t *testing.T, rw *lock.RWMutex) *lock.Lease {
			writing := mustLockAs(ctx, t, rw.Write())
			reading := mustLockAs(ctx, t, rw.Read())
			mustRelease(t, writing)
			return reading
		},
		"an owner whose other goroutine has the read side": func(ctx context.Context, t *testing.T, rw *lock.RWMutex) *lock.Lease {
			return granted(t, lockLater(ctx, rw.Read()), "the read side")
		},
		"an owner whose other goroutine gets the read side first": func(ctx context.Context, t *testing.T, rw *lock.RWMutex) *lock.Lease {
			held := mustLockAs(asOwner(t, "writer"), t, rw.Write())
			reader := lockLater(ctx, rw.Read())
			await(time.Second)
			writer := lockLater(ctx, rw.Write())
			await(time.Second)
			mustWaitStill(t, "both goroutines", reader, writer)
			mustRelease(t, held)
			wantErr(t, "Lock", failed(t, writer, "the refusal"), lock.ErrUpgrade)
			return granted(t, reader, "the read side")
		},
	} {
		envSubtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path := anyPath("/upgrade")
			c, route := onRoute(t, env)
			rw := newReadWrite(t, c, path)
			one := asOwner(t, "one")
			reading := hold(one, t, rw)
			route.ResetRequests()
			for try, attempt := range map[string]func(context.Context) (*lock.Lease, error){
				"lock": rw.Write().Lock, "try lock": rw.Write().TryLock, "lock of another value": newReadWrite(t, c, path).Write().Lock,
			} {
				wantErr(t, try, errOf(attempt(one)), lock.ErrUpgrade)
			}
			if n := route.Count(fault.Create, fault.GetChildren); n != 0 {
				t.Errorf("%d requests for what can't be had, want 0", n)
			}
			if _, err := rw.Write().Lock(one); err == nil || err.Error() != fmt.Sprintf(
				"lock: lock write side of %s: caller has the read side, which can't be upgraded: release it first", path) {
				t.Errorf("error %q", err)
			}
			mustBeHeld(asOwner(t, "another"), t, rw.Write())
			mustRelease(t, reading)
			mustRelease(t, mustLockAs(one, t, rw.Write()))
		}, zkenv.Only("virtual time", zkenv.Embedded))
	}
}

// TestDowngradeByAnOwnerOfTwoGoroutines: one waits for the write side when the
// other asks for the read side.
func TestDowngradeByAnOwnerOfTwoGoroutines(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		rw := newReadWrite(t, virtualClient(t, srv), "/downgrade/two")
		held := mustLockAs(asOwner(t, "other"), t, rw.Write())
		one := asOwner(t, "one")
		writer := lockLater(one, rw.Write())
		synctest.Wait()
		mustBeHeld(one, t, rw.Read())
		reader := lockLater(one, rw.Read())
		await(time.Second)
		mustWaitStill(t, "both goroutines", writer, reader)
		mustRelease(t, held)
		writing, reading := granted(t, writer, "the write side"), granted(t, reader, "the read side beside it")
		if digits(writing.Node()) != digits(reading.Node()) {
			t.Errorf("nodes %s and %s, want one number", writing.Node(), reading.Node())
		}
		mustRelease(t, writing)
		mustRelease(t, reading)
	})
}

// TestWhoWaitsForTheOtherSideIsNotForgotten has several goroutines give one
// attempt up at once, in all the orders that come about, while another waits for
// its outcome.
func TestWhoWaitsForTheOtherSideIsNotForgotten(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/downgrade/forgotten"
		rw := newReadWrite(t, virtualClient(t, srv), path)
		held := mustLockAs(asOwner(t, "reader"), t, rw.Read())
		for range 10 {
			one := asOwner(t, "one")
			withdrawing, withdraw := context.WithCancel(one)
			var writers []<-chan result
			for range 9 {
				writers = append(writers, lockLater(withdrawing, rw.Write()))
			}
			synctest.Wait()
			if left := znodesBelow(srv, path); len(left) != 2 {
				t.Errorf("%q, want the reader's znode and one of all writers", left)
			}
			reader := lockLater(one, rw.Read())
			await(time.Second)
			mustWaitStill(t, "the end of an attempt", reader)
			withdraw()
			for _, done := range writers {
				wantErr(t, "Lock", failed(t, done, "the end of the attempt"), context.Canceled)
			}
			mustRelease(t, granted(t, reader, "the read side, shared"))
			synctest.Wait()
		}
		mustRelease(t, held)
	})
}

// TestDowngradeWhoseWriteNodeIsDeleted deletes the write node before its read node is created, and
// so grants the lock to another writer.
func TestDowngradeWhoseWriteNodeIsDeleted(t *testing.T) {
	t.Parallel()
	for name, withdrawn := range map[string]bool{"waits for the next writer": false, "leaves no orphan": true} {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			const path = "/downgrade-beside"
			c, other := virtualClient(t, srv), virtualClient(t, srv)
			rw := newReadWrite(t, c, path)
			one := asOwner(t, "one")
			writing := mustLockAs(one, t, rw.Write())
			writer := lockLater(t.Context(), newReadWrite(t, other, path).Write())
			synctest.Wait()
			entering := srv.Rules().Add(fault.Rule{
				Session: c.Session().ID, Op: fault.Create, Path: path + "/*", Action: fault.HoldRequest,
			})
			reader := lockLater(one, rw.Read())
			<-entering.Hit()
			deleteNode(t, other, writing.Node())
			next := granted(t, writer, "the next writer")
			entering.Release()
			await(time.Second)
			if withdrawn {
				if left := znodesBelow(srv, path); len(left) != 2 {
					t.Errorf("%q, want the writer's znode and one of the reader's", left)
				}
			} else if len(reader) > 0 {
				t.Error("a reader is granted beside a writer")
			}
			mustRelease(t, next)
			mustRelease(t, granted(t, reader, "the reader"))
			_ = writing.Release(t.Context()) // lost long ago
		})
	}
}

// TestDowngradeFence: the read lease has the fence of the write lease, because a writer behind it
// has a smaller czxid than the read node. That has the number of the write node.
func TestDowngradeFence(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]bool{"Lock": false, "TryLock": true} {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			const path = "/downgrade-beside/fence"
			rw, others := newReadWrite(t, virtualClient(t, srv), path), newReadWrite(t, virtualClient(t, srv), path)
			var read lock.Locker = rw.Read()
			if try {
				read = tryLock{rw.Read()}
			}
			one := asOwner(t, "one")
			writing := mustLockAs(one, t, rw.Write())
			writer := lockLater(t.Context(), others.Write())
			synctest.Wait()
			reading, again := mustLockAs(one, t, read), mustLockAs(one, t, rw.Read())
			if want := "-__READ__" + digits(writing.Node()); !strings.HasSuffix(reading.Node(), want) {
				t.Errorf("node %s, want one whose name ends with %s", reading.Node(), want)
			}
			mustRelease(t, writing)
			mustRelease(t, again)
			if n := rw.Read().Held(one); n != 1 {
				t.Errorf("read side held %d times, want 1", n)
			}
			mustRelease(t, reading)
			next := granted(t, writer, "the next writer")
			if first, second, third := writing.Fence(), reading.Fence(), next.Fence(); first != second || second >= third {
				t.Errorf("fences %d, %d and %d; want the first twice, and then a greater one", first, second, third)
			}
			mustRelease(t, next)
		})
	}
}

// TestADowngradeNeedsTheWriteNode has the write node deleted without its owner's
// knowledge, and another writer granted: the owner's read node would stand ahead
// of that one.
func TestADowngradeNeedsTheWriteNode(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/rwloss/unnoticed"
		operator, c := virtualClient(t, srv), virtualClient(t, srv)
		rw := newReadWrite(t, c, path)
		one := asOwner(t, "one")
		unnoticed := srv.Rules().Add(fault.Rule{
			Session: c.Session().ID, Op: fault.Event, Path: path + "/*", Action: fault.DropEvent,
		})
		writing := mustLockAs(one, t, rw.Write())
		writer := lockLater(t.Context(), newReadWrite(t, operator, path).Write())
		await(time.Second) // the watch on the write node is set
		deleteNode(t, operator, writing.Node())
		lease := granted(t, writer, "the writer behind")
		must.Receive(t, unnoticed.Hit(), "the lost event")
		if err := writing.Err(); err != nil {
			t.Fatalf("write lease: %v; it was to notice nothing", err)
		}
		mustBeHeld(one, t, rw.Read())
		reader := lockLater(one, rw.Read())
		await(time.Second)
		mustWaitStill(t, "the reader beside a write node that is gone", reader)
		mustRelease(t, lease)
		reading := granted(t, reader, "the reader")
		if digits(reading.Node()) == digits(writing.Node()) {
			t.Errorf("node %s has the number of the one that was deleted", reading.Node())
		}
		mustRelease(t, reading)
		wantErr(t, "release of the write lease", writing.Release(t.Context()), lock.ErrLost)
	})
}

// TestADowngradeInTheNextSessionQueuesAsOthersDo asks for the read side while
// there is no connection; the session that has the write side ends before there is.
func TestADowngradeInTheNextSessionQueuesAsOthersDo(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/rwloss/next-session"
		createNode(t, virtualClient(t, srv), path+"/foreign") // the directory stays
		c := virtualClient(t, srv)
		rw := newReadWrite(t, c, path)
		one := asOwner(t, "one")
		writing := mustLockAs(one, t, rw.Write())
		creates := srv.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.Pass, Times: fault.Forever})
		srv.Refuse()
		srv.Cut()
		synctest.Wait()
		reader := lockLater(one, rw.Read())
		synctest.Wait()
		mustWaitStill(t, "the reader without a connection", reader)
		must.OK(t, srv.Expire(c.Session().ID))
		srv.Accept()
		reading := granted(t, reader, "the read side in the next session")
		must.Receive(t, writing.Lost(), "the loss of the write lease")
		if n := creates.Hits(); n != 1 {
			t.Errorf("%d creates, want 1: the number of a lost node is of no use", n)
		}
		mustRelease(t, reading)
	})
}
