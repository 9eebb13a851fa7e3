package lock_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// revocable returns an option whose calls arrive on the channel.
func revocable() (lock.Option, <-chan *lock.Lease) {
	calls := make(chan *lock.Lease, 16) // more than any test makes
	return recipes.WithRevocation(func(l *lock.Lease) { calls <- l }), calls
}

// mustNotCall fails the test if a function is called within a short time.
func mustNotCall(t testing.TB, calls <-chan *lock.Lease, why string) {
	t.Helper()
	zktest.Never(t, 150*time.Millisecond, "a call: "+why, func() bool { return len(calls) > 0 })
}

func mustRevoke(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	must.OK(t, lock.Revoke(t.Context(), c, path))
}

// setData does what a process without this package does.
func setData(t testing.TB, c *framework.Client, path string, data []byte) {
	t.Helper()
	must.Get(c.Set(t.Context(), path, data, framework.AnyVersion))(t)
}

// participantsOf returns l's participants.
func participantsOf(t testing.TB, l lock.Locker) []lock.Participant {
	t.Helper()
	found := must.Get(l.(interface {
		Participants(ctx context.Context) ([]lock.Participant, error)
	}).Participants(t.Context()))(t)
	return found
}

// TestAnyClientCanRevoke: CURATOR-150, where only the client that had the lock could.
func TestAnyClientCanRevoke(t *testing.T) {
	t.Parallel()
	const path = "/revoke/anybody"
	server := zktest.Shared(t)
	c, stranger := newClient(t, server.Addr()), newClient(t, server.Addr())
	released := make(chan error, 1)
	option := recipes.WithRevocation(func(l *lock.Lease) { released <- l.Release(context.Background()) })
	for _, k := range kindsThat(withParticipants) {
		l, other := k.lock(t, c, path+"/"+k.name, option), k.lock(t, stranger, path+"/"+k.name)
		lease := mustLockAs(asOwner(t, "holder"), t, l)
		mustRevoke(t, stranger, participantsOf(t, other)[0].Path)
		if err := must.Receive(t, released, "the call of the function"); err != nil {
			t.Errorf("%s: release by the function: %v", k.name, err)
		}
		wantErr(t, fmt.Sprintf("%s: lease", k.name), lease.Err(), lock.ErrReleased)
		mustRelease(t, mustLock(t, other))
	}
}

// TestRevokeWritesCuratorsRequest and nothing else; a request that comes too late
// is as good as fulfilled.
func TestRevokeWritesCuratorsRequest(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	curator, c := newClient(t, server.Addr()), newClient(t, server.Addr())
	node := createNode(t, curator, "/revoke/curators/_c_00000000-0000-4000-8000-000000000000-lock-", framework.Sequential())
	asked := must.Get(curator.Watch(t.Context(), node, framework.WatchData))(t)
	defer asked.Close()
	mustRevoke(t, c, node)
	must.Receive(t, asked.Fired(), "the watch of Curator's holder")
	if data, st, err := curator.Get(t.Context(), node); err != nil || string(data) != "__REVOKE__" || st.Version != 1 {
		t.Errorf("data %q of version %d (%v), want __REVOKE__ of version 1", data, st.Version, err)
	}
	m := newMutex(t, c, "/revoke/curators")
	if found := participantsOf(t, m); len(found) != 1 || !found[0].Revoked || found[0].Data != nil {
		t.Errorf("participants %+v, want one that was revoked, without data", found)
	}
	deleteNode(t, curator, node)
	mustRevoke(t, c, node)
	if _, ok, err := c.Exists(t.Context(), node); ok || err != nil {
		t.Errorf("node exists: %v (%v), want that a late request creates nothing", ok, err)
	}
}

func TestCuratorsRequestsAreReported(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	c, curator := newClient(t, server.Addr()), newClient(t, server.Addr())
	option, calls := revocable()
	m := newMutex(t, c, "/revoke/heeded", option)
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	must.Get(w.Write([]byte("__REVOKE__")))(t)
	must.OK(t, w.Close())
	for name, data := range map[string][]byte{"plain": []byte("__REVOKE__"), "compressed": compressed.Bytes()} {
		lease := mustLock(t, m)
		setData(t, curator, lease.Node(), data)
		if got := must.Receive(t, calls, "the call for the request, "+name); got != lease {
			t.Errorf("%s: called with %v, want the lease %v", name, got, lease)
		}
		wantErr(t, fmt.Sprintf("%s: lease that was asked for", name), lease.Err(), nil)
		mustRelease(t, lease)
	}
}

func TestOtherDataIsNoRequest(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	c, other := newClient(t, server.Addr()), newClient(t, server.Addr())
	option, calls := revocable()
	own := newMutex(t, c, "/revoke/own", option, recipes.WithoutMetadata(), recipes.WithData([]byte("__REVOKE__")))
	lease := mustLock(t, own)
	if found := participantsOf(t, own); len(found) != 1 || found[0].Revoked {
		t.Errorf("participants %+v, want one that was not revoked", found)
	}
	mustNotCall(t, calls, "the holder itself put that there")
	for _, data := range []string{"", "__REVOKE", "__REVOKE__ ", "\x1f\x8b\x08", "revoke"} {
		setData(t, other, lease.Node(), []byte(data))
	}
	mustNotCall(t, calls, "the data is none")
	mustRevoke(t, other, lease.Node())
	must.Receive(t, calls, "the call for a request after all that")
	mustRelease(t, lease)
}

// TestEachRequestIsReportedOnce: a request is not reported again after a reconnection. It is
// reported again when it is made again, and to the next holder.
func TestEachRequestIsReportedOnce(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	c, proxy := behindProxy(t, server)
	other := newClient(t, server.Addr())
	option, calls := revocable()
	m := newMutex(t, c, "/revoke/once", option)
	for range 2 {
		lease := mustLock(t, m)
		mustRevoke(t, other, lease.Node())
		must.Receive(t, calls, "the call for the first request")
		proxy.Cut()
		zktest.Eventually(t, generous, "the reconnection", func() bool { return len(proxy.Sessions()) == 1 })
		must.OK(t, c.Sync(t.Context(), "/"))
		mustNotCall(t, calls, "nobody has asked again")
		mustRevoke(t, other, lease.Node())
		must.Receive(t, calls, "the call for the second request")
		mustRelease(t, lease)
	}
}

// TestAnOwnersOldestLeaseIsRevoked, and the lock is given back with the last.
func TestAnOwnersOldestLeaseIsRevoked(t *testing.T) {
	t.Parallel()
	c := newClient(t, zktest.Shared(t).Addr())
	option, calls := revocable()
	m := newMutex(t, c, "/revoke/oldest", option)
	outer, inner := mustLock(t, m), mustLock(t, m)
	mustRevoke(t, c, outer.Node())
	if got := must.Receive(t, calls, "the call"); got != outer {
		t.Error("called with another lease than the oldest")
	}
	mustRelease(t, outer)
	mustRevoke(t, c, inner.Node())
	if got := must.Receive(t, calls, "the call"); got != inner {
		t.Error("called with another lease than the one that is left")
	}
	mustRelease(t, inner)
}

func TestALostLeaseIsNotRevoked(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	c, proxy := behindProxy(t, server)
	option, calls := revocable()
	m := newMutex(t, c, "/revoke/lost", option)
	lease := mustLock(t, m)
	expire(t, server, proxy, c)
	must.Receive(t, lease.Lost(), "the loss of the lease")
	mustRevoke(t, c, lease.Node())
	mustNotCall(t, calls, "the lease is lost")
	wantErr(t, "release", lease.Release(t.Context()), lock.ErrLost)
	again := mustLock(t, m)
	mustRevoke(t, c, again.Node())
	must.Receive(t, calls, "the call for the next holder")
	mustRelease(t, again)
}

func TestRevokeRefusesBadArguments(t *testing.T) {
	t.Parallel()
	const path = "/revoke/bad"
	c := newClient(t, zktest.Shared(t).Addr())
	lease := mustLock(t, newMutex(t, c, path))
	for name, tt := range map[string]struct {
		client *framework.Client
		path   string
		want   string
	}{
		"no client":             {nil, lease.Node(), "lock: revoke " + lease.Node() + ": client: must not be nil"},
		"no path":               {c, "", `lock: revoke : invalid path "": must not be empty`},
		"a lock's own path":     {c, path, "lock: revoke " + path + ": it is no contender's znode, since it is not ephemeral"},
		"all faults in one try": {nil, "x", "lock: revoke x: client: must not be nil\ninvalid path \"x\": must start with /"},
	} {
		if err := lock.Revoke(t.Context(), tt.client, tt.path); err == nil || err.Error() != tt.want {
			t.Errorf("%s: error %v, want %s", name, err, tt.want)
		}
	}
	if data, st, err := c.Get(t.Context(), path); err != nil || st.Version != 0 || len(data) != 0 {
		t.Errorf("the directory has data %q of version %d (%v), want it unchanged", data, st.Version, err)
	}
	wantErr(t, "with a dead context", lock.Revoke(dead(t), c, lease.Node()), context.Canceled)
	mustRelease(t, lease)
}

// TestRevocationOfAWaiter requests the release from a waiter. Its function is called once, with
// the lease, when the waiter has the lock. A semaphore mutex has another znode while it waits.
func TestRevocationOfAWaiter(t *testing.T) {
	t.Parallel()
	queues := kindsThat(func(k kind) bool { return withParticipants(k) || k.name == "semaphore mutex" })
	eachKindInVirtualTime(t, queues, func(t *testing.T, k kind, srv *zkserver.Server) {
		const path = "/revoke-waiter"
		c, other := virtualClient(t, srv), virtualClient(t, srv)
		option, calls := revocable()
		l := k.lock(t, c, path, option)
		held := mustLock(t, k.rivalOf(t, other, path))
		done := lockLater(t.Context(), l)
		await(time.Second)
		for _, p := range participantsOf(t, l) {
			if p.Session == c.Session().ID && p.Kind != "lease-" {
				mustRevoke(t, other, p.Path)
			}
		}
		await(time.Second)
		if len(calls) > 0 {
			t.Error("called while it waits")
		}
		mustRelease(t, held)
		lease := granted(t, done, "the lock")
		await(time.Second)
		if len(calls) != 1 {
			t.Fatalf("%d calls, want 1", len(calls))
		}
		if got := <-calls; got != lease {
			t.Errorf("called with %v, want the lease %v", got, lease)
		}
		mustRelease(t, lease)
		mustRelease(t, mustLock(t, l))
		if len(calls) > 0 {
			t.Error("called for a lease that nobody asked for")
		}
	})
}

// TestCloseWaitsForARevocationAtWork, and a release does not, for which the function may wait.
func TestCloseWaitsForARevocationAtWork(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		begun, released := make(chan struct{}), make(chan struct{})
		var done atomic.Bool
		lease := mustLock(t, newMutex(t, c, "/at-work", recipes.WithRevocation(func(*lock.Lease) {
			close(begun)
			<-released
			<-time.After(2 * time.Second)
			wantErr(t, "Sync by a function that outlives the client", c.Sync(context.Background(), "/"), framework.ErrClosed)
			done.Store(true)
		})))
		must.OK(t, lock.Revoke(t.Context(), virtualClient(t, srv), lease.Node()))
		<-begun
		mustRelease(t, lease)
		close(released)
		must.OK(t, c.Close())
		if !done.Load() {
			t.Error("the client is closed, and the function is at work")
		}
	})
}

// TestAPanicOfARevocationIsLogged has the function panic at the first of two requests.
func TestAPanicOfARevocationIsLogged(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		core, logs := observer.New(zap.ErrorLevel)
		c := virtualClient(t, srv, framework.WithLogger(zap.New(core)))
		var calls atomic.Int32
		lease := mustLock(t, newMutex(t, c, "/panic/revoked", recipes.WithRevocation(func(*lock.Lease) {
			if calls.Add(1) == 1 {
				panic("by the test")
			}
		})))
		for range 2 {
			must.OK(t, lock.Revoke(t.Context(), virtualClient(t, srv), lease.Node()))
			await(time.Second)
		}
		if n := calls.Load(); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
		if n := logs.FilterMessage("a function of the user's panicked").Len(); n != 1 {
			t.Errorf("%d lines of the panic, want 1: %v", n, logs.All())
		}
		mustRelease(t, lease)
	})
}
