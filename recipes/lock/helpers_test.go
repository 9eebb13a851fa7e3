package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// Names of the package that variables called lease hide.
var errSuspended, errNoGuard = lease.ErrSuspended, lease.ErrNoGuard

type metadata = lease.Metadata

// generous bounds what has to happen at some time, on a machine as slow as it may be.
const generous = 30 * time.Second

// newClient returns a connected client that is closed at the end of the test.
func newClient(t testing.TB, connect string, opts ...framework.Option) *framework.Client {
	t.Helper()
	opts = append([]framework.Option{framework.WithSessionTimeout(10 * time.Second)}, opts...)
	c := must.Get(framework.NewClient(connect, opts...))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	must.OK(t, c.AwaitConnected(t.Context()))
	return c
}

func newMutex(t testing.TB, c *framework.Client, path string, opts ...lock.Option) *lock.Mutex {
	t.Helper()
	m := must.Get(lock.NewMutex(c, path, opts...))(t)
	return m
}

// onRoute returns a client that has a route of its own to a server of the environment.
func onRoute(t testing.TB, env *zkenv.Env, opts ...framework.Option) (*framework.Client, *zkenv.Route) {
	t.Helper()
	route := env.Route(t)
	return route.Client(t, opts...), route
}

// behindProxy returns a client that reaches the server through a proxy.
func behindProxy(t testing.TB, server *zktest.Server, opts ...framework.Option) (*framework.Client, *zkproxy.Proxy) {
	t.Helper()
	proxy := zkproxy.Run(t, server.Addr())
	return newClient(t, proxy.Addr(), opts...), proxy
}

// mustLock locks or fails the test.
func mustLock(t testing.TB, l lock.Locker) *lock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	defer cancel()
	lease := must.Get(l.Lock(ctx))(t)
	return lease
}

func mustRelease(t testing.TB, l *lock.Lease) {
	t.Helper()
	must.OK(t, l.Release(t.Context()))
}

// contenders returns the names in the lock's directory, as c sees them after a sync.
func contenders(t testing.TB, c *framework.Client, path string) []string {
	t.Helper()
	must.OK(t, c.Sync(t.Context(), path))
	if _, ok, err := c.Exists(t.Context(), path); err != nil || !ok {
		return nil
	}
	names, _, err := c.Children(t.Context(), path)
	if err != nil {
		return nil // the directory was reaped just now
	}
	return names
}

// awaitContenders waits until the lock's directory has n children.
func awaitContenders(t testing.TB, c *framework.Client, path string, n int) {
	t.Helper()
	zktest.Eventually(t, generous, "the number of contenders", func() bool { return len(contenders(t, c, path)) == n })
}

// A result is what a Lock on another goroutine came to.
type result struct {
	lease *lock.Lease
	err   error
	at    time.Time
}

// lockLater calls Lock on a goroutine of its own.
func lockLater(ctx context.Context, l lock.Locker) <-chan result {
	done := make(chan result, 1)
	go func() {
		lease, err := l.Lock(ctx)
		done <- result{lease, err, time.Now()}
	}()
	return done
}

func newLocal(t testing.TB, m *lock.Mutex, max int) *lock.Local {
	t.Helper()
	l := must.Get(lock.NewLocal(m, max))(t)
	return l
}

// firstOf returns the lease itself, or that of a Multi's first member.
func firstOf(l *lock.Lease) *lock.Lease {
	if members := l.Members(); members != nil {
		return members[0]
	}
	return l
}
