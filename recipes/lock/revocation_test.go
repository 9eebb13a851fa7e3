package lock_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// revocable returns an option whose calls arrive on the channel.
func revocable() (lock.Option, <-chan *lock.Lease) {
	calls := make(chan *lock.Lease, 16) // more than any test makes
	return recipes.WithRevocation(func(l *lock.Lease) { calls <- l }), calls
}

func mustRevoke(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	must.OK(t, lock.Revoke(t.Context(), c, path))
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
	eachKindAndEnv(t, kindsThat(withParticipants), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		released := make(chan error, 1)
		option := recipes.WithRevocation(func(l *lock.Lease) { released <- l.Release(context.Background()) })
		stranger := env.Client(t)
		other := k.lock(t, stranger, path)
		lease := mustLockAs(asOwner(t, "holder"), t, k.lock(t, env.Client(t), path, option))
		mustRevoke(t, stranger, participantsOf(t, other)[0].Path)
		must.OK(t, must.Receive(t, released, "the release by the function"))
		wantErr(t, "lease", lease.Err(), lock.ErrReleased)
		mustRelease(t, mustLock(t, other))
	}, oneOfEach())
}

// TestRevokeWritesCuratorsRequest and nothing else; a request that comes too late
// is as good as fulfilled.
func TestRevokeWritesCuratorsRequest(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		curator, c := virtualClient(t, srv), virtualClient(t, srv)
		node := createNode(t, curator, "/revoke/curators/_c_00000000-0000-4000-8000-000000000000-lock-", framework.Sequential())
		mustRevoke(t, c, node)
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
	})
}

// TestWhichDataRequestARelease writes to a holder's znode as other clients might. What the holder itself has
// put there requests nothing.
func TestWhichDataRequestARelease(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		var compressed bytes.Buffer
		w := gzip.NewWriter(&compressed)
		must.Get(w.Write([]byte("__REVOKE__")))(t)
		must.OK(t, w.Close())
		curator := virtualClient(t, srv)
		option, calls := revocable()
		m := newMutex(t, virtualClient(t, srv), "/revoke", option, recipes.WithoutMetadata(), recipes.WithData([]byte("__REVOKE__")))
		for data, want := range map[string]bool{
			"__REVOKE__": true, compressed.String(): true,
			"": false, "__REVOKE": false, "__REVOKE__ ": false, "\x1f\x8b\x08": false, "revoke": false,
		} {
			lease := mustLock(t, m)
			await(time.Second)
			if found := participantsOf(t, m); len(calls) > 0 || len(found) != 1 || found[0].Revoked {
				t.Fatalf("%d calls, participants %+v; want none by the holder's own data", len(calls), found)
			}
			must.Get(curator.Set(t.Context(), lease.Node(), []byte(data), framework.AnyVersion))(t)
			await(time.Second)
			if asked := len(calls) == 1; asked != want || asked && <-calls != lease {
				t.Errorf("%q: asked to release the lease %v, want %v", data, asked, want)
			}
			wantErr(t, "lease", lease.Err(), nil)
			mustRelease(t, lease)
		}
	})
}

// TestEachRequestIsReportedOnce: a request is not reported again after a reconnection. It is
// reported again when it is made again, and to the next holder, but not for a lease that is lost.
func TestEachRequestIsReportedOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c, other := virtualClient(t, srv), virtualClient(t, srv)
		option, calls := revocable()
		m := newMutex(t, c, "/revoke", option)
		expect := func(n int, what string) {
			t.Helper()
			await(time.Second)
			if len(calls) != n {
				t.Errorf("%s: %d calls, want %d", what, len(calls), n)
			}
			for len(calls) > 0 {
				<-calls
			}
		}
		for range 2 {
			lease := mustLock(t, m)
			mustRevoke(t, other, lease.Node())
			expect(1, "the first request")
			srv.Cut()
			must.OK(t, c.Sync(t.Context(), "/"))
			expect(0, "after a reconnection")
			mustRevoke(t, other, lease.Node())
			expect(1, "the second request")
			must.OK(t, srv.Expire(c.Session().ID))
			must.Receive(t, lease.Lost(), "the loss of the lease")
			mustRevoke(t, other, lease.Node())
			expect(0, "of a lost lease")
			wantErr(t, "release", lease.Release(t.Context()), lock.ErrLost)
		}
	})
}

// TestAnOwnersOldestLeaseIsRevoked, and the lock is given back with the last.
func TestAnOwnersOldestLeaseIsRevoked(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		option, calls := revocable()
		m := newMutex(t, c, "/revoke", option)
		for _, lease := range []*lock.Lease{mustLock(t, m), mustLock(t, m)} {
			mustRevoke(t, c, lease.Node())
			if got := must.Receive(t, calls, "the call"); got != lease {
				t.Error("called with another lease than the oldest that is left")
			}
			mustRelease(t, lease)
		}
	})
}

func TestRevokeRefusesBadArguments(t *testing.T) {
	t.Parallel()
	const path = "/revoke/bad"
	c := virtualClient(t, virtualServer(t))
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
