package lock_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

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

// mustBeClean fails the test if znodes of contenders are left after a while.
func (a *atOnce) mustBeClean(t *testing.T) {
	t.Helper()
	await(time.Minute)
	for _, dir := range []string{"/locks", "/leases"} {
		if left := znodesBelow(a.srv, atOncePath+dir); len(left) != 0 {
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
					a.mustBeClean(t)
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
	})
}
