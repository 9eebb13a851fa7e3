package lock_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// awaitQueued waits until n contenders stand in the semaphore mutex's queue.
func awaitQueued(t testing.TB, c *framework.Client, path string, n int) {
	t.Helper()
	awaitContenders(t, c, path+"/locks", n)
}

// TestSemaphoreMutexRequests counts what a semaphore mutex asks of the server, and how often it waits for that.
func TestSemaphoreMutexRequests(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, proxy := onRoute(t, env)
		m := newSemaphoreMutex(t, c, "/semaphore/requests")
		createDirs(t, c, "/semaphore/requests/locks", "/semaphore/requests/leases")
		proxy.ResetRequests()
		lockIn := func(trips int64) {
			t.Helper()
			const roundTrip = 400 * time.Millisecond
			proxy.SetLatency(roundTrip)
			start := time.Now()
			lease := mustLock(t, m)
			took := time.Since(start)
			proxy.SetLatency(0)
			if got := int64(took / roundTrip); got != trips {
				t.Errorf("locked in %v with round trips of %v, want %d of them", took, roundTrip, trips)
			}
			mustRelease(t, lease)
		}
		lockIn(2)
		recipetest.MustHaveSent(t, "the first Lock and Release", proxy, "/semaphore/requests",
			fault.Create, fault.GetChildren, fault.Create, fault.MultiRead, fault.Delete, fault.Delete)
		lockIn(1) // it takes the lease without a place in the queue
		recipetest.MustHaveSent(t, "the next Lock and Release", proxy, "/semaphore/requests", fault.Create, fault.MultiRead, fault.Delete)
		held := mustLock(t, newSemaphoreMutex(t, env.Client(t), "/semaphore/requests"))
		proxy.ResetRequests()
		mustRefuse(t, m)
		if proxy.Count(fault.Multi) == 0 { // of an operation that is about no path of the lock's
			t.Error("no transaction between the listings of a refused TryLock")
		}
		recipetest.MustHaveSent(t, "a refused TryLock", proxy, "/semaphore/requests", fault.GetChildren, fault.GetChildren)
		mustRelease(t, held)
	}, zkenv.Only("on a busy machine a hold lasts 50 ms, and looks at its znode", zkenv.Embedded, zkenv.EmbeddedEnsemble))
}

// TestSemaphoreMutexLayout reads the znodes of a holder and a waiter: they are those of Curator's
// InterProcessSemaphoreMutex.
func TestSemaphoreMutexLayout(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/semaphore-layout/lock"
		c := env.Client(t)
		m := newSemaphoreMutex(t, c, path)
		held := mustLock(t, m)
		awaitQueued(t, c, path, 0)
		waiter := lockLater(t.Context(), newSemaphoreMutex(t, env.Client(t), path))
		awaitContenders(t, c, path+"/leases", 2)
		names := contenders(t, c, path)
		slices.Sort(names)
		if !slices.Equal(names, []string{"leases", "locks"}) {
			t.Errorf("children %v, want leases and locks", names)
		}
		const protected = `^_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-`
		for dir, pattern := range map[string]string{"/leases": protected + `lease-\d{10}$`, "/locks": protected + `lock-\d{10}$`} {
			for _, name := range contenders(t, c, path+dir) {
				if !regexp.MustCompile(pattern).MatchString(name) {
					t.Errorf("%s has %s, want a name like %s", dir, name, pattern)
				}
			}
		}
		found, err := m.Participants(t.Context())
		if err != nil || len(found) != 3 {
			t.Fatalf("participants %+v, %v; want the holder, and the next with two znodes", found, err)
		}
		for i, want := range []struct {
			kind   string
			holder bool
		}{{"lease-", true}, {"lease-", false}, {"lock-", false}} {
			if found[i].Kind != want.kind || found[i].Holder != want.holder {
				t.Errorf("participant %d: %+v, want %+v", i, found[i], want)
			}
		}
		mustRelease(t, held)
		mustRelease(t, granted(t, waiter, "the lock"))
	})
}

// TestSemaphoreMutexCountsAllLeases has a foreign child among the leases, which Curator counts,
// and one in the queue, which no contender waits for.
func TestSemaphoreMutexCountsAllLeases(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path := anyPath("/semaphore/foreign")
		c := env.Client(t)
		for _, node := range []string{"/locks/foreign", "/leases/foreign"} {
			must.Get(c.Create(t.Context(), path+node, nil, framework.WithParents()))(t)
		}
		m := newSemaphoreMutex(t, c, path)
		mustRefuse(t, m)
		done := lockLater(t.Context(), m)
		awaitContenders(t, c, path+"/leases", 2)
		must.OK(t, c.Delete(t.Context(), path+"/leases/foreign"))
		mustRelease(t, granted(t, done, "the lock"))
	})
}

// TestSemaphoreMutexOperatorDeletesAWaiter deletes znodes of the first waiter. After its lease, it
// makes another. After its znode in the queue, it queues again. The next waiter then is the first:
// the two must not wait for each other's leases.
func TestSemaphoreMutexOperatorDeletesAWaiter(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/semaphore/operator"
		operator := env.Client(t)
		held := mustLock(t, newSemaphoreMutex(t, operator, path))
		awaitQueued(t, operator, path, 0)
		first := lockLater(t.Context(), newSemaphoreMutex(t, env.Client(t), path))
		awaitContenders(t, operator, path+"/leases", 2)
		for _, name := range contenders(t, operator, path+"/leases") {
			if node := path + "/leases/" + name; node != held.Node() {
				must.OK(t, operator.Delete(t.Context(), node))
			}
		}
		awaitContenders(t, operator, path+"/leases", 2)
		second := lockLater(t.Context(), newSemaphoreMutex(t, env.Client(t), path))
		awaitQueued(t, operator, path, 2)
		queued := contenders(t, operator, path+"/locks")
		slices.SortFunc(queued, func(a, b string) int { return int(a[len(a)-1]) - int(b[len(b)-1]) })
		must.OK(t, operator.Delete(t.Context(), path+"/locks/"+queued[0]))
		awaitQueued(t, operator, path, 2)
		mustRelease(t, held)
		mustRelease(t, granted(t, second, "the lock for the second"))
		mustRelease(t, granted(t, first, "the lock for the first, behind the second"))
		awaitQueued(t, operator, path, 0)
		awaitContenders(t, operator, path+"/leases", 0)
	})
}

// If a client is ahead in the queue of a semaphore mutex, TryLock returns ErrHeld alone. If
// something else went wrong there, TryLock returns that error.
func TestSemaphoreMutexSaysWhyItRefuses(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/refusal/semaphore"
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
		if _, err := m.TryLock(dead(t)); !errors.Is(err, context.Canceled) || errors.Is(err, lock.ErrHeld) {
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
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/refusal/semaphore"
		other, c := virtualClient(t, srv), virtualClient(t, srv)
		m := newSemaphoreMutex(t, c, path)
		entering := srv.Rules().Add(fault.Rule{Session: c.Session().ID, Op: fault.Create, Path: path + "/locks/*", Action: fault.HoldRequest})
		deletes := srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/leases/*", Action: fault.Pass, Times: fault.Forever})
		looks := srv.Rules().Add(fault.Rule{Op: fault.Exists, Path: path + "/leases/*", Action: fault.Pass, Times: fault.Forever}) // ahead of a deletion
		refused := lockLater(t.Context(), tryLock{m})
		<-entering.Hit() // it has listed, and found no other contender
		must.Get(other.Create(t.Context(), path+"/leases/another", nil, framework.WithParents()))(t)
		entering.Release()
		if err := failed(t, refused, "the refusal"); !errors.Is(err, lock.ErrHeld) || err.Error() != "lock: try lock "+path+": held by another owner" {
			t.Errorf("refused with %v, want ErrHeld and nothing else", err)
		}
		<-time.After(time.Minute)
		if n, looked := deletes.Hits(), looks.Hits(); n != 1 || looked != 0 {
			t.Errorf("its lease was deleted %d times, and looked for %d times to be deleted again", n, looked)
		}
		if left := znodesBelow(srv, path+"/leases"); len(left) != 1 {
			t.Errorf("%v are left, want the other's", left)
		}
	})
}

// TestSemaphoreMutexReportsARefusedDeletion keeps the holder from deleting its znode in the
// queue, behind which every other contender would wait.
func TestSemaphoreMutexReportsARefusedDeletion(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/semaphore-refused"
		core, logs := observer.New(zap.ErrorLevel)
		operator, c := virtualClient(t, srv), virtualClient(t, srv, framework.WithLogger(zap.New(core)))
		createDirs(t, operator, path+"/leases")
		noDelete := framework.WithACL(acl.Entry{Perms: acl.All &^ acl.Delete, Scheme: "world", ID: "anyone"})
		must.Get(operator.Create(t.Context(), path+"/locks", nil, noDelete))(t)
		m := newSemaphoreMutex(t, c, path)
		wantErr(t, "Release", mustLock(t, m).Release(t.Context()), framework.ErrNoAuth)
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
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		path := anyPath("/semaphore-turn")
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
