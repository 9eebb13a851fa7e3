package lock_test

import (
	"context"
	"errors"
	"regexp"
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

// TestSemaphoreMutexOperatorDeletesAWaiter deletes znodes of the first waiter. After its place in the queue, it
// queues again. Nothing happens to the leases, so only the watch on that znode notifies it. After its lease, it makes
// another. If a second waiter has the turn then, the two must not wait for each other's leases.
func TestSemaphoreMutexOperatorDeletesAWaiter(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/semaphore/operator"
		operator, c := virtualClient(t, srv), virtualClient(t, srv)
		held := mustLock(t, newSemaphoreMutex(t, operator, path))
		first := lockLater(t.Context(), newSemaphoreMutex(t, c, path))
		znodes := func() (lease, place string) {
			t.Helper()
			await(time.Second) // all watches are set, long before a recheck
			own := ephemeralsOf(t, srv, c.Session().ID)
			if len(own) != 2 {
				t.Fatalf("the first waiter has %q, want its lease and its place", own)
			}
			return own[0], own[1]
		}
		lease, place := znodes()
		deleteNode(t, operator, place)
		newLease, newPlace := znodes()
		if newLease == lease || newPlace == place {
			t.Errorf("the first waiter has %s and %s still, want it to have queued again", newLease, newPlace)
		}
		deleteNode(t, operator, newLease)
		if another, _ := znodes(); another == newLease {
			t.Errorf("the first waiter has no other lease than %s", another)
		}
		second := lockLater(t.Context(), newSemaphoreMutex(t, virtualClient(t, srv), path))
		await(time.Second)
		deleteNode(t, operator, newPlace)
		await(time.Second)
		mustRelease(t, held)
		mustRelease(t, granted(t, second, "the lock for the second"))
		mustRelease(t, granted(t, first, "the lock for the first, behind the second"))
		mustLeaveNoContender(t, srv, path)
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

// TestARefusedDeletionIsRepeated keeps a holder from deleting a znode behind which every other contender would wait:
// that in a semaphore mutex's queue, and an unfair mutex's own.
func TestARefusedDeletionIsRepeated(t *testing.T) {
	t.Parallel()
	for closed, newLock := range map[string]newKind{"/refused/locks": semaphoreMutexAt, "/refused": unfairMutexAt} {
		virtualSubtest(t, closed, func(t *testing.T, srv *zkserver.Server) {
			const path = "/refused"
			core, logs := observer.New(zap.ErrorLevel)
			operator, c := virtualClient(t, srv), virtualClient(t, srv, framework.WithLogger(zap.New(core)))
			createDirs(t, operator, closed)
			recipetest.Permit(t, operator, closed, acl.All&^acl.Delete)
			l := newLock(t, c, path)
			wantErr(t, "Release", mustLock(t, l).Release(t.Context()), framework.ErrNoAuth)
			mustRefuse(t, l)
			zktest.Eventually(t, generous, "an error in the log", func() bool { return logs.Len() > 0 })
			recipetest.Permit(t, operator, closed, acl.All)
			zktest.Eventually(t, generous, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
			if n := logs.Len(); n != 1 {
				t.Errorf("%d lines in the log, want one: %v", n, logs.All())
			}
			mustRelease(t, mustLock(t, newLock(t, operator, path)))
		})
	}
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

// A SemaphoreMutex whose previous lock met no other contender takes the lease's znode without a place in
// the queue. These tests put something in its way.

// atOncePath is the path of the lock in these tests.
const atOncePath = "/at-once/lock"

// An atOnce has a SemaphoreMutex that has been locked, so that its next Lock begins without a place in the
// queue.
type atOnce struct {
	srv      *zkserver.Server
	c, other *framework.Client
	m        *lock.SemaphoreMutex
}

func newAtOnce(t *testing.T, opts ...zkserver.Option) *atOnce {
	t.Helper()
	srv := zkserver.Run(t, opts...) // by the options alone: what a drawn server lacks, it might lack as well
	a := &atOnce{srv: srv, c: virtualClient(t, srv), other: virtualClient(t, srv)}
	createDirs(t, a.other, atOncePath+"/locks", atOncePath+"/leases")
	a.m = newSemaphoreMutex(t, a.c, atOncePath)
	mustRelease(t, mustLock(t, a.m))
	return a
}

// creates returns a rule that matches the creates of a session in one of the lock's directories.
func (a *atOnce) creates(dir string, by *framework.Client, action fault.Action) *fault.Handle {
	return a.srv.Rules().Add(fault.Rule{
		Session: by.Session().ID, Op: fault.Create, Path: atOncePath + dir + "/*", Action: action, Times: fault.Forever,
	})
}

// put creates a znode that a client of another library might have.
func (a *atOnce) put(t *testing.T, name string) (path string) {
	t.Helper()
	return createNode(t, a.other, atOncePath+name, framework.Ephemeral(), framework.Sequential())
}

const curatorsName = "/_c_01234567-89ab-cdef-0123-456789abcdef-"

// mustLeaveNoContender fails the test if a semaphore mutex's contenders have znodes after a while.
func mustLeaveNoContender(t *testing.T, srv *zkserver.Server, path string) {
	t.Helper()
	await(time.Minute)
	for _, dir := range []string{"/locks", "/leases"} {
		if left := znodesBelow(srv, path+dir); len(left) != 0 {
			t.Errorf("%v are left", left)
		}
	}
}

// mustQueue fails the test unless a contender of the client waits in the queue, without a lease at first.
func (a *atOnce) mustQueue(t *testing.T, done <-chan result) {
	t.Helper()
	await(time.Second)
	if len(done) > 0 {
		t.Fatal("Lock has returned")
	}
	own := ephemeralsOf(t, a.srv, a.c.Session().ID)
	if !slices.ContainsFunc(own, func(path string) bool { return strings.HasPrefix(path, atOncePath+"/locks/") }) {
		t.Errorf("it has %q, want a place in the queue", own)
	}
}

func TestSemaphoreMutexAtOnce(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(t *testing.T, a *atOnce){
		"alone, it does not queue": func(t *testing.T, a *atOnce) {
			queued := a.creates("/locks", a.c, fault.Pass)
			createNode(t, a.other, atOncePath+"/locks/foreign") // no contender
			for range 3 {
				mustRelease(t, mustLock(t, a.m))
			}
			if n := queued.Hits(); n != 0 {
				t.Errorf("it has queued %d times", n)
			}
			deleteNode(t, a.other, atOncePath+"/locks/foreign")
		},
		"behind a holder of Curator's": func(t *testing.T, a *atOnce) {
			held := a.put(t, "/leases"+curatorsName+"lease-")
			done := lockLater(t.Context(), a.m)
			a.mustQueue(t, done)
			deleteNode(t, a.other, held)
			mustRelease(t, granted(t, done, "the lock"))
		},
		"behind a contender that is in the queue and has no lease yet": func(t *testing.T, a *atOnce) {
			turn := a.put(t, "/locks"+curatorsName+"lock-")
			done := lockLater(t.Context(), a.m)
			a.mustQueue(t, done)
			lease := a.put(t, "/leases"+curatorsName+"lease-")
			deleteNode(t, a.other, turn)
			a.mustQueue(t, done)
			deleteNode(t, a.other, lease)
			mustRelease(t, granted(t, done, "the lock"))
		},
		"two at once": func(t *testing.T, a *atOnce) {
			second := newSemaphoreMutex(t, a.other, atOncePath)
			mustRelease(t, mustLock(t, second))
			first, others := a.creates("/leases", a.c, fault.HoldReply), a.creates("/leases", a.other, fault.HoldReply)
			one := lockLater(t.Context(), a.m)
			<-first.Hit()
			two := lockLater(t.Context(), second)
			<-others.Hit()
			first.Release()
			others.Release()
			await(time.Second)
			mustReleaseEach(t, one, two)
		},
		"an operator deletes its lease ahead of the listings": func(t *testing.T, a *atOnce) {
			slow := a.srv.Rules().Add(fault.Rule{Session: a.c.Session().ID, Op: fault.MultiRead, Action: fault.HoldRequest})
			done := lockLater(t.Context(), a.m)
			<-slow.Hit()
			for _, lease := range znodesBelow(a.srv, atOncePath+"/leases") {
				deleteNode(t, a.other, lease)
			}
			slow.Release()
			held := granted(t, done, "the lock")
			mustHold(t, a.other, held)
			mustRelease(t, held)
		},
		"another kind of lock is held on the path": func(t *testing.T, a *atOnce) {
			held := mustLock(t, newMutex(t, a.other, atOncePath))
			wantErr(t, "Lock", errOf(a.m.Lock(t.Context())), lock.ErrMixed)
			mustRelease(t, held)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			versions := []string{"3.6.0", "3.9.6"}
			if strings.HasSuffix(name, "of the listings") {
				versions = versions[:1]
			}
			for _, version := range versions {
				synctest.Test(t, func(t *testing.T) {
					a := newAtOnce(t, zkserver.WithVersion(version))
					play(t, a)
					mustLeaveNoContender(t, a.srv, atOncePath)
				})
			}
		})
	}
}

// TestSemaphoreMutexAtOnceOnlyWhenFree counts the attempts without a place in the queue: there is none in a
// value that has not been locked before, and none after one that did not acquire.
func TestSemaphoreMutexAtOnceOnlyWhenFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAtOnce(t)
		fresh := newSemaphoreMutex(t, a.c, atOncePath)
		queued, leases := a.creates("/locks", a.c, fault.Pass), a.creates("/leases", a.c, fault.Pass)
		expect := func(what string, wantQueued, wantLeases int) {
			t.Helper()
			if q, l := queued.Hits(), leases.Hits(); q != wantQueued || l != wantLeases {
				t.Errorf("%s: %d creates in the queue and %d of leases so far, want %d and %d", what, q, l, wantQueued, wantLeases)
			}
		}
		mustRelease(t, mustLock(t, fresh))
		expect("the first lock of a value", 1, 1)
		mustRelease(t, mustLock(t, fresh))
		expect("the second", 1, 2)
		held := mustLock(t, newSemaphoreMutex(t, a.other, atOncePath))
		done := lockLater(t.Context(), fresh)
		await(time.Second)
		expect("an attempt in vain", 2, 4)
		mustRelease(t, held)
		mustRelease(t, granted(t, done, "the lock"))
		mustRelease(t, mustLock(t, fresh))
		expect("the lock after a wait", 3, 5)
		mustRelease(t, mustLock(t, fresh))
		expect("the lock after one without a wait", 3, 6)
		tried := newSemaphoreMutex(t, a.c, atOncePath)
		mustRelease(t, mustTry(t, tried))
		expect("a try", 4, 7)
		mustRelease(t, mustLock(t, tried))
		expect("the lock after a try", 4, 8)
	})
}
