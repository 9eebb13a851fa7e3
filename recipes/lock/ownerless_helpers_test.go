package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/worlds"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// An ownerless is a lock that knows no owners.
type ownerless interface {
	lock.Locker
	Participants(ctx context.Context) ([]lock.Participant, error)
}

// An ownerlessKind is one of the two kinds, for the cases that they share.
type ownerlessKind struct {
	name string
	lock func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) ownerless

	create   fault.Op // of its znodes, once it has been used
	dirs     []string // its directories, to come after the lock's path
	requests string   // pattern of the paths that its requests name, likewise
	free     int      // requests of Lock where the lock is free
	waiting  int      // requests of Lock until it waits for somebody
	cycle    int      // requests of Lock and Release together
}

var ownerlessKinds = []ownerlessKind{
	{
		name: "unfair mutex",
		lock: func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) ownerless {
			return newExclusive(t, c, path, opts...)
		},
		create:   fault.Multi,
		requests: "*", // its epoch's
		free:     1, waiting: 2, cycle: 2,
	},
	{
		name: "semaphore",
		lock: func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) ownerless {
			return newSemaphoreMutex(t, c, path, opts...)
		},
		create:   fault.Create,
		dirs:     []string{"/locks", "/leases"},
		requests: "/**",
		free:     4, waiting: 6, cycle: 6,
	},
}

// forOwnerless runs body for both kinds in each world, on a path of its own
// below dir.
func forOwnerless(t *testing.T, dir string, body func(t *testing.T, w *worlds.World, kind ownerlessKind, path string), opts ...worlds.Option) {
	t.Helper()
	for _, kind := range ownerlessKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			worlds.Each(t, func(t *testing.T, w *worlds.World) { body(t, w, kind, anyPath(dir)+"/"+kind.name) }, opts...)
		})
	}
}

// createDirs creates the directories of a lock at path such that no server
// removes them.
func (k ownerlessKind) createDirs(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	parent, _ := framework.SplitPath(path)
	createDirs(t, c, parent)
	for _, name := range k.dirs {
		createDirs(t, c, path+name)
	}
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

func newExclusive(t testing.TB, c *framework.Client, path string, opts ...lock.Option) *lock.UnfairMutex {
	t.Helper()
	e, err := lock.NewUnfairMutex(c, path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newSemaphoreMutex(t testing.TB, c *framework.Client, path string, opts ...lock.Option) *lock.SemaphoreMutex {
	t.Helper()
	m, err := lock.NewSemaphoreMutex(c, path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mustTry locks without waiting or fails the test.
func mustTry(t testing.TB, l lock.Locker) *lock.Lease {
	t.Helper()
	lease, err := l.TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
	if err := c.Sync(t.Context(), path); err != nil {
		t.Fatal(err)
	}
}

// ephemerals returns the lock's znodes that belong to a session: those of
// holders and waiters, and ghosts.
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

// mustHold fails the test unless the lease stands, and with it its znode.
func mustHold(t testing.TB, c *framework.Client, lease *lock.Lease) {
	t.Helper()
	if err := lease.Err(); err != nil {
		t.Fatalf("lease: %v, want nil", err)
	}
	mustSync(t, c, lease.Node())
	st, ok, err := c.Exists(t.Context(), lease.Node())
	fence := lease.Fence()
	if err != nil || !ok || st.Czxid != fence {
		t.Fatalf("the lease's znode: %v, %v, czxid %d; want it to stand with czxid %d", ok, err, st.Czxid, fence)
	}
}

// operations returns what the client asked of the server, but for what keeps
// the session alive.
func operations(proxy *worlds.Way) []fault.Op {
	var ops []fault.Op
	for _, rq := range proxy.Requests() {
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
func count(proxy *worlds.Way, ops ...fault.Op) int {
	n := 0
	for _, op := range operations(proxy) {
		if slices.Contains(ops, op) {
			n++
		}
	}
	return n
}
