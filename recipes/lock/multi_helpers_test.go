package lock_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
)

func newMulti(t testing.TB, locks ...lock.Locker) *lock.Multi {
	t.Helper()
	m := must.Get(lock.NewMulti(locks...))(t)
	return m
}

// newMutexes returns a mutex for each path.
func newMutexes(t testing.TB, c *framework.Client, paths ...string) []lock.Locker {
	t.Helper()
	mutexes := make([]lock.Locker, len(paths))
	for i, path := range paths {
		mutexes[i] = newMutex(t, c, path)
	}
	return mutexes
}

// numbered returns n paths below dir, in their order.
func numbered(dir string, n int) []string {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = fmt.Sprintf("%s/%02d", dir, i)
	}
	return paths
}

// keepDirectories gives each of the locks' directories a child that the locks ignore. So the
// server does not remove it while requests are counted.
func keepDirectories(t testing.TB, c *framework.Client, paths []string) {
	t.Helper()
	for _, path := range paths {
		must.Get(c.Create(t.Context(), path+"/kept", nil, framework.WithParents(), framework.Idempotent()))(t)
	}
}

// awaitEach waits until the lock's directories have so many children, in the
// order of the paths.
func awaitEach(t testing.TB, c *framework.Client, paths []string, n ...int) {
	t.Helper()
	for i, path := range paths {
		awaitContenders(t, c, path, n[min(i, len(n)-1)])
	}
}

// A foreign is a Locker from elsewhere, that tells what is done with it.
type foreign struct {
	lock.Locker
	path string
	told func(what string)
	err  error // of Lock, if it is to fail
}

func (f *foreign) Path() string { return f.path }

func (f *foreign) Lock(ctx context.Context) (*lock.Lease, error) {
	f.told("lock " + f.path)
	if f.err != nil {
		return nil, f.err
	}
	return f.Locker.Lock(ctx)
}

// nameless is a Locker without a method that tells its path.
type nameless struct{ locker lock.Locker }

func (n nameless) Lock(ctx context.Context) (*lock.Lease, error)    { return n.locker.Lock(ctx) }
func (n nameless) TryLock(ctx context.Context) (*lock.Lease, error) { return n.locker.TryLock(ctx) }
