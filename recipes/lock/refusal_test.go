package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// If a client is ahead in the queue of a semaphore mutex, TryLock returns ErrHeld alone. If
// something else went wrong there, TryLock returns that error.
func TestSemaphoreMutexSaysWhyItRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/refusal/semaphore"
		srv := virtualServer(t)
		other, c := virtualClient(t, srv), virtualClient(t, srv)
		m := newSemaphoreMutex(t, c, path)
		ahead, err := other.Create(t.Context(), path+"/locks/_c_01234567-89ab-cdef-0123-456789abcdef-lock-", nil,
			framework.Ephemeral(), framework.Sequential(), framework.WithParents())
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.TryLock(t.Context())
		if !errors.Is(err, lock.ErrHeld) || err.Error() != "lock: try lock "+path+": held by another owner" {
			t.Errorf("behind another: %v, want ErrHeld and nothing else", err)
		}
		must.OK(t, other.Delete(t.Context(), ahead))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.TryLock(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, lock.ErrHeld) {
			t.Errorf("with a context that has ended: %v", err)
		}
		// No client may create in the queue.
		must.Get(other.SetACL(t.Context(), path+"/locks", acl.ReadOnly(), framework.AnyVersion))(t)
		if _, err := m.TryLock(t.Context()); !errors.Is(err, framework.ErrNoAuth) || errors.Is(err, lock.ErrHeld) {
			t.Errorf("without the right to queue: %v, want ErrNoAuth", err)
		}
	})
}

// A contender that comes second deletes what it created, once.
func TestSemaphoreMutexTakesBackOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/refusal/semaphore"
		srv := virtualServer(t)
		other, c := virtualClient(t, srv), virtualClient(t, srv)
		m := newSemaphoreMutex(t, c, path)
		entering := srv.Rules().Add(fault.Rule{Session: c.Session().ID, Op: fault.Create, Path: path + "/locks/*", Action: fault.HoldRequest})
		deletes := srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/leases/*", Action: fault.Pass, Times: fault.Forever})
		refused := make(chan error, 1)
		go func() {
			_, err := m.TryLock(t.Context())
			refused <- err
		}()
		<-entering.Hit() // it has listed, and found no other contender
		must.Get(other.Create(t.Context(), path+"/leases/another", nil, framework.WithParents()))(t)
		entering.Release()
		if err := <-refused; !errors.Is(err, lock.ErrHeld) || err.Error() != "lock: try lock "+path+": held by another owner" {
			t.Errorf("refused with %v, want ErrHeld and nothing else", err)
		}
		<-time.After(time.Minute)
		if n := deletes.Hits(); n != 1 {
			t.Errorf("its lease was deleted %d times", n)
		}
		if left := znodesBelow(srv, path+"/leases"); len(left) != 1 {
			t.Errorf("%v are left, want the other's", left)
		}
	})
}

// An error of one member of a Multi names that member.
func TestAMultisErrorNamesTheMember(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		other, c := virtualClient(t, srv), virtualClient(t, srv)
		held := mustLock(t, newMutex(t, other, "/refusal/b"))
		m := newMulti(t, newUnfairMutex(t, c, "/refusal/a"), newMutex(t, c, "/refusal/b"), newUnfairMutex(t, c, "/refusal/c"))
		_, err := m.TryLock(t.Context())
		if want := "lock: try lock /refusal/b: held by another owner"; !errors.Is(err, lock.ErrHeld) || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
		mustRelease(t, held)
	})
}

// The ACL that an option gives is that of a lease's znode, however it was taken.
func TestSemaphoreMutexHasTheACLOfItsOption(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		want := acl.Entry{Perms: acl.All &^ acl.Admin, Scheme: "world", ID: "anyone"}
		m := newSemaphoreMutex(t, c, "/refusal/acl", recipes.WithACL(want))
		for _, l := range []lock.Locker{m, tryLock{m}, m} {
			lease := mustLock(t, l)
			if acl, _, err := c.ACL(t.Context(), lease.Node()); err != nil || len(acl) != 1 || acl[0] != want {
				t.Errorf("ACL %v, %v, want %v", acl, err, want)
			}
			mustRelease(t, lease)
		}
	})
}

// TestSemaphoreMutexReportsARefusedDeletion keeps the holder from deleting its znode in the
// queue, behind which every other contender would wait.
func TestSemaphoreMutexReportsARefusedDeletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/semaphore-refused"
		srv := virtualServer(t)
		core, logs := observer.New(zap.ErrorLevel)
		operator, c := virtualClient(t, srv), virtualClient(t, srv, framework.WithLogger(zap.New(core)))
		createDirs(t, operator, path+"/leases")
		noDelete := framework.WithACL(acl.Entry{Perms: acl.All &^ acl.Delete, Scheme: "world", ID: "anyone"})
		must.Get(operator.Create(t.Context(), path+"/locks", nil, noDelete))(t)
		m := newSemaphoreMutex(t, c, path)
		if err := mustLock(t, m).Release(t.Context()); !errors.Is(err, framework.ErrNoAuth) {
			t.Errorf("Release: %v, want ErrNoAuth", err)
		}
		zktest.Eventually(t, generous, "an error in the log", func() bool { return logs.Len() > 0 })
		must.Get(operator.SetACL(t.Context(), path+"/locks", acl.Open(), framework.AnyVersion))(t)
		zktest.Eventually(t, generous, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
		if n := logs.Len(); n != 1 {
			t.Errorf("%d lines in the log, want one: %v", n, logs.All())
		}
		mustRelease(t, mustLock(t, newSemaphoreMutex(t, operator, path)))
	})
}

// TestSemaphoreMutexTurnIsDeleted deletes the queue znode of the waiter that has the turn. Nothing
// happens to the leases, so only the watch on that znode notifies the waiter. Without it, the next
// contender would take the turn, too, and the two would wait for each other's leases.
func TestSemaphoreMutexTurnIsDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := anyPath("/semaphore-turn")
		srv := virtualServer(t)
		operator, holder, c := virtualClient(t, srv), virtualClient(t, srv), virtualClient(t, srv)
		held := mustLock(t, newSemaphoreMutex(t, holder, path))
		waiter := lockLater(t.Context(), newSemaphoreMutex(t, c, path))
		await(time.Second) // all watches are set, long before a recheck
		before := ephemeralsOf(t, srv, c.Session().ID)
		if len(before) != 2 {
			t.Fatalf("the waiter has %q, want its turn and its lease", before)
		}
		for _, node := range before {
			if strings.HasPrefix(node, path+"/locks/") {
				deleteNode(t, operator, node)
			}
		}
		await(time.Second)
		after := ephemeralsOf(t, srv, c.Session().ID)
		if len(after) != 2 || after[0] == before[0] || after[1] == before[1] {
			t.Errorf("the waiter has %q after %q, want it to have queued again", after, before)
		}
		mustRelease(t, held)
		mustRelease(t, granted(t, waiter, "the waiter"))
		await(time.Second)
		if left := ephemeralsOf(t, srv, c.Session().ID); len(left) != 0 {
			t.Errorf("%q are left", left)
		}
	})
}

// ephemeralsOf returns the paths of a session's znodes in ascending order.
func ephemeralsOf(t *testing.T, srv *zkserver.Server, session int64) []string {
	t.Helper()
	for _, s := range srv.Sessions() {
		if s.ID == session {
			return slices.Sorted(slices.Values(s.Ephemerals))
		}
	}
	t.Fatalf("session %#x is over", session)
	return nil
}
