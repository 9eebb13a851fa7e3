package lock_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// waits reports whether a client has begun to watch the lock's znodes.
func waits(route *zkenv.Route, path string) bool {
	return slices.ContainsFunc(route.Requests(), func(rq zkproxy.Request) bool {
		return rq.Op == fault.GetData && strings.HasPrefix(rq.Path, path)
	})
}

// createDirs creates directories that no server removes, where they are missing.
func createDirs(t testing.TB, c *framework.Client, paths ...string) {
	t.Helper()
	for _, path := range paths {
		_, err := c.Create(t.Context(), path, nil, framework.WithParents())
		if err != nil && !errors.Is(err, framework.ErrNodeExists) {
			t.Fatal(err)
		}
	}
}

func newUnfairMutex(t testing.TB, c *framework.Client, path string, opts ...lock.Option) *lock.UnfairMutex {
	t.Helper()
	e := must.Get(lock.NewUnfairMutex(c, path, opts...))(t)
	return e
}

func newSemaphoreMutex(t testing.TB, c *framework.Client, path string, opts ...lock.Option) *lock.SemaphoreMutex {
	t.Helper()
	m := must.Get(lock.NewSemaphoreMutex(c, path, opts...))(t)
	return m
}

// mustTry locks without waiting or fails the test.
func mustTry(t testing.TB, l lock.Locker) *lock.Lease {
	t.Helper()
	lease := must.Get(l.TryLock(t.Context()))(t)
	return lease
}

// mustRefuse fails the test unless TryLock says ErrHeld.
func mustRefuse(t testing.TB, l lock.Locker) {
	t.Helper()
	if lease, err := l.TryLock(t.Context()); lease != nil || !errors.Is(err, lock.ErrHeld) {
		t.Fatalf("TryLock: %v, %v; want no lease and ErrHeld", lease, err)
	}
}

// mustSync has c's server catch up with the leader.
func mustSync(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	must.OK(t, c.Sync(t.Context(), path))
}

// ephemerals returns the lock's znodes that belong to a session: holders, waiters and orphans.
func ephemerals(t testing.TB, c *framework.Client, path string) []string {
	t.Helper()
	mustSync(t, c, path)
	var found []string
	var walk func(path string)
	walk = func(path string) {
		st, ok, err := c.Exists(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if ok && st.EphemeralOwner > 0 {
			found = append(found, path)
		}
		names, _, err := c.Children(t.Context(), path)
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			t.Fatal(err)
		}
		for _, name := range names {
			walk(path + "/" + name)
		}
	}
	walk(path)
	return found
}

// awaitEphemerals waits until n of the lock's znodes belong to sessions.
func awaitEphemerals(t testing.TB, c *framework.Client, path string, n int) {
	t.Helper()
	zktest.Eventually(t, generous, "the number of znodes that belong to sessions", func() bool {
		return len(ephemerals(t, c, path)) == n
	})
}

// mustHold fails the test unless the lease is held, and its znodes exist.
func mustHold(t testing.TB, c *framework.Client, lease *lock.Lease) {
	t.Helper()
	if err := lease.Err(); err != nil {
		t.Fatalf("lease: %v, want nil", err)
	}
	leases := lease.Members()
	if leases == nil {
		leases = []*lock.Lease{lease}
	}
	for _, l := range leases {
		mustSync(t, c, l.Node())
		st, ok, err := c.Exists(t.Context(), l.Node())
		if fence := l.Fence(); err != nil || !ok || st.Czxid != fence {
			t.Fatalf("the lease's znode: %v, %v, czxid %d; want it to exist with czxid %d", ok, err, st.Czxid, fence)
		}
	}
}

// operations returns what the client asked of the server, but for what keeps
// the session alive.
func operations(route *zkenv.Route) []fault.Op {
	var ops []fault.Op
	for _, rq := range route.Requests() {
		switch rq.Op {
		case fault.Ping, fault.Connect, fault.SetWatches:
		default:
			if !keepsAlive(rq) {
				ops = append(ops, rq.Op)
			}
		}
	}
	return ops
}

// keepsAlive reports whether the request is a heartbeat of the session, or a probe.
func keepsAlive(rq zkproxy.Request) bool {
	path := rq.Path
	if len(rq.Parts) == 1 {
		path = rq.Parts[0].Path
	}
	return strings.HasPrefix(path, "/zookeeper/")
}

// count returns how many requests of some kinds the client sent, without those that keep
// the session alive.
func count(route *zkenv.Route, ops ...fault.Op) int {
	n := 0
	for _, op := range operations(route) {
		if slices.Contains(ops, op) {
			n++
		}
	}
	return n
}
