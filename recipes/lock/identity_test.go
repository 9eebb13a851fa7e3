package lock_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// An embedding is a lock of another package that embeds one of this package, and so its path.
type embedding struct{ *lock.Mutex }

// TestMultiOrdersViewsByTheEnsemble has two Multis of the same two locks, one of them through a view in
// which the second lock's path sorts first. They must not deadlock, whatever kind the members are of.
func TestMultiOrdersViewsByTheEnsemble(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(t *testing.T, m *lock.Mutex) lock.Locker{
		"mutex":           func(_ *testing.T, m *lock.Mutex) lock.Locker { return m },
		"local":           func(t *testing.T, m *lock.Mutex) lock.Locker { t.Helper(); return newLocal(t, m, 10) },
		"embedding":       func(_ *testing.T, m *lock.Mutex) lock.Locker { return embedding{m} },
		"multi of one":    func(t *testing.T, m *lock.Mutex) lock.Locker { t.Helper(); return newMulti(t, m) },
		"multi of locals": func(t *testing.T, m *lock.Mutex) lock.Locker { t.Helper(); return newMulti(t, newLocal(t, m, 10)) },
	}
	for name, of := range kinds {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			a, b, third := virtualClient(t, srv), virtualClient(t, srv), virtualClient(t, srv)
			inside := must.Get(a.Namespace("zz"))(t)
			one := newMulti(t, of(t, newMutex(t, inside, "/b")), newMutex(t, a, "/c"))
			two := newMulti(t, newMutex(t, b, "/zz/b"), newMutex(t, b, "/c"))
			last, first := mustLock(t, newMutex(t, third, "/zz/b")), mustLock(t, newMutex(t, third, "/c"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			waiting := []<-chan result{lockLater(ctx, one), lockLater(ctx, two)}
			await(time.Second)
			mustRelease(t, last)
			mustRelease(t, first)
			var both sync.WaitGroup
			for _, done := range waiting {
				both.Go(func() {
					got := <-done
					if got.Err != nil {
						t.Errorf("two Multis wait for each other: %v", got.Err)
						return
					}
					mustRelease(t, got.Lease)
				})
			}
			both.Wait()
		})
	}
}

// A lateConn delivers what the server sends late.
type lateConn struct {
	net.Conn
	by time.Duration
}

func (c lateConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	await(c.by)
	return n, err
}

// TestTryLockOfLocalsIsBoundedAsAWhole tries ten Locals of a client to which each reply comes late.
func TestTryLockOfLocalsIsBoundedAsAWhole(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtualClient(t, srv, framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := srv.Dial(ctx, network, addr)
			return lateConn{conn, 400 * time.Millisecond}, err
		}))
		var locals []lock.Locker
		for _, path := range numbered("/locals", 10) {
			locals = append(locals, newLocal(t, newMutex(t, c, path), 3))
		}
		m := newMulti(t, locals...)
		begun := time.Now()
		wantErr(t, "TryLock", errOf(m.TryLock(t.Context())), framework.ErrNotConnected)
		if took := time.Since(begun); took > c.ConnectTimeout()+time.Second {
			t.Errorf("TryLock took %v; the connect timeout is %v", took, c.ConnectTimeout())
		}
	})
}

// TestGuardsCheckTheirOwnZnode runs a lease's guards in transactions of other views, in which their paths
// would name other znodes, or none.
func TestGuardsCheckTheirOwnZnode(t *testing.T) {
	t.Parallel()
	eachKindInVirtualTime(t, kinds, func(t *testing.T, k kind, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		one, two := must.Get(c.Namespace("one"))(t), must.Get(c.Namespace("two"))(t)
		m := newMulti(t, k.lock(t, one, "/a"), k.lock(t, two, "/b"))
		decoy := newMulti(t, k.lock(t, one, "/b"), k.lock(t, two, "/a")) // the same paths, the other way round
		lease, others := mustLock(t, m), mustLock(t, decoy)
		guards := lease.Guards()
		for _, runs := range []*framework.Client{c, one, two} {
			if _, err := runs.Txn(t.Context(), guards...); err != nil {
				t.Errorf("the guards of a lease that is held, in the view %q: %v", runs.AbsolutePath("/"), err)
			}
		}
		mustRelease(t, lease)
		for _, runs := range []*framework.Client{c, one, two} {
			_, err := runs.Txn(t.Context(), guards...)
			if !errors.Is(err, framework.ErrNoNode) && !errors.Is(err, framework.ErrBadVersion) {
				t.Errorf("the guards of a lease that was released, in the view %q: %v", runs.AbsolutePath("/"), err)
			}
		}
		mustRelease(t, others)
	})
}

// TestAMultiWithoutAMember releases one member on its own: the rest has guards and a deadline of its own.
func TestAMultiWithoutAMember(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		one, two := virtualClient(t, srv), virtualClient(t, srv)
		m := newMulti(t, newMutex(t, one, "/a"), newMutex(t, two, "/b"))
		lease := mustLock(t, m)
		first, rest := lease.Members()[0], lease.Members()[1]
		mustRelease(t, first)
		must.OK(t, one.Close())
		if _, err := two.Txn(t.Context(), lease.Guards()...); err != nil {
			t.Errorf("the guards after a member's release: %v", err)
		}
		await(time.Minute) // the released member's client proves nothing any more
		if got, want := lease.Deadline(), rest.Deadline(); !got.Equal(want) {
			t.Errorf("the deadline is %v, that of the remaining member %v", got, want)
		}
		mustRelease(t, lease)
	})
}

// TestHoldsNamesPathsInTheEnsemble has an owner hold one path in two namespaces.
func TestHoldsNamesPathsInTheEnsemble(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		owner := lock.NewOwner("worker")
		ctx := lock.ContextWithOwner(t.Context(), owner)
		for _, ns := range []string{"one", "two"} {
			mustLockAs(ctx, t, newMutex(t, must.Get(c.Namespace(ns))(t), "/a"))
		}
		if got, want := owner.Holds(), []string{"/one/a", "/two/a"}; !slices.Equal(got, want) {
			t.Errorf("the owner holds %q, want %q", got, want)
		}
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

// TestTryLockTakesNoPlace has a TryLock of the owner come at the moment at which the driver of its attempt
// withdraws and another goroutine of the owner has not woken yet: that one keeps the place in the queue.
func TestTryLockTakesNoPlace(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c, other := virtualClient(t, srv), virtualClient(t, srv)
		for _, path := range numbered("/place", 100) {
			tryWhileThePlaceIsHandedOver(t, newMutex(t, c, path), newMutex(t, other, path))
		}
	})
}

func tryWhileThePlaceIsHandedOver(t *testing.T, m, rival *lock.Mutex) {
	t.Helper()
	held := mustLock(t, rival)
	ctx := lock.ContextWithOwner(t.Context(), lock.NewOwner("worker"))
	driving, quit := context.WithCancel(ctx)
	first := lockLater(driving, m)
	await(time.Second)
	second := lockLater(ctx, m)
	await(time.Second)
	before := participantsOf(t, m)[1].Path
	var tries sync.WaitGroup
	for range 4 {
		tries.Go(func() {
			for len(first) == 0 {
				wantErr(t, "TryLock", errOf(m.TryLock(ctx)), lock.ErrHeld)
			}
		})
	}
	quit()
	tries.Wait()
	<-first
	await(time.Second)
	if after := participantsOf(t, m); len(after) != 2 || after[1].Path != before {
		t.Fatalf("the owner's place is %v, want %s still", after[1:], before)
	}
	mustRelease(t, held)
	mustRelease(t, granted(t, second, "the goroutine that waited"))
}
