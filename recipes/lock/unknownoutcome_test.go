package lock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
)

// TestMulti_deleted_after_an_unknown_outcome cuts the connection before the
// transaction of a release, of whose znodes an operator has deleted one.
func TestMulti_deleted_after_an_unknown_outcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		c, operator := virtualClient(t, srv), virtualClient(t, srv)
		lease := mustLock(t, newMulti(t, newMutexes(t, c, "/unknown/a", "/unknown/b", "/unknown/c")...))
		must.OK(t, operator.Delete(t.Context(), lease.Members()[1].Node()))
		cut := srv.Rules().Add(fault.Rule{Op: fault.Multi, Path: "/unknown/a/*", Action: fault.CutBefore})
		var lost *lock.LostError
		if err := lease.Release(t.Context()); !errors.As(err, &lost) || lost.Path != "/unknown/b" || !errors.Is(err, lock.ErrNodeDeleted) {
			t.Errorf("Release: %v, want that /unknown/b was lost by a deletion", err)
		}
		if cut.Hits() != 1 {
			t.Errorf("%d transactions cut, want 1", cut.Hits())
		}
	})
}

// TestLeaseDeadline compares what leases of all makes say with the moment of their loss.
func TestLeaseDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		leases := map[string]*lock.Lease{
			"mutex":  mustLock(t, newMutex(t, c, "/deadline/mutex")),
			"unfair": mustLock(t, newUnfairMutex(t, c, "/deadline/unfair")),
			"multi":  mustLock(t, newMulti(t, newMutex(t, c, "/deadline/a"), newMutex(t, c, "/deadline/b"))),
			"local":  mustLock(t, newLocal(t, newMutex(t, c, "/deadline/local"), 2)),
		}
		first := make(map[string]time.Time)
		for name, l := range leases {
			first[name] = l.Deadline()
		}
		await(time.Minute)
		for name, l := range leases {
			if d := l.Deadline(); !d.After(first[name]) || !d.After(time.Now()) {
				t.Errorf("%s: deadline %v a minute after %v, at %v", name, d, first[name], time.Now())
			}
		}
		srv.Refuse()
		srv.Cut()
		deadlines := make(map[string]time.Time)
		for name, l := range leases {
			deadlines[name] = l.Deadline()
		}
		for name, l := range leases {
			<-l.Lost()
			if now := time.Now(); !now.Equal(deadlines[name]) {
				t.Errorf("%s: lost at %v, its deadline was %v", name, now, deadlines[name])
			}
		}
		srv.Accept()
	})
}

// TestOnSuspend_before_the_lease_is_watched breaks the connection, and waits until it is
// there again, in the function that is told of the grant.
func TestOnSuspend_before_the_lease_is_watched(t *testing.T) {
	t.Parallel()
	told := kindsThat(func(k kind) bool { return k.fair && k.name != "multi" })
	for _, k := range told {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := virtualServer(t)
				c := virtualClient(t, srv)
				calls := 0
				l := k.lock(t, c, "/suspended/lock", recipes.WithLossPolicy(lease.OnSuspend), recipes.WithQueuePosition(func(ahead int) {
					if ahead > 0 {
						return
					}
					calls++
					srv.Cut()
					synctest.Wait()
					if err := c.AwaitConnected(t.Context()); err != nil {
						t.Error(err)
					}
				}))
				held := mustLock(t, l)
				synctest.Wait()
				if err := held.Err(); !errors.Is(err, errSuspended) || calls != 1 {
					t.Errorf("after a break before the lease was watched, told of %d grants: %v, want ErrSuspended", calls, err)
				}
				unbroken := mustLock(t, newMutex(t, c, "/suspended/after", recipes.WithLossPolicy(lease.OnSuspend)))
				synctest.Wait()
				if err := unbroken.Err(); err != nil {
					t.Errorf("a lease that was granted after the break: %v", err)
				}
			})
		})
	}
}
