package lock_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// An observedKind is a kind of lock, as the tests of telemetry use it.
type observedKind struct {
	name      string
	newLocker func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker
	blocker   func(t testing.TB, c *framework.Client) lock.Locker // what keeps others from it; nil for its own kind
	reentrant bool
	revocable bool
}

// block returns what c can keep others from the lock with.
func (k observedKind) block(t testing.TB, c *framework.Client) lock.Locker {
	t.Helper()
	if k.blocker != nil {
		return k.blocker(t, c)
	}
	return k.newLocker(t, c)
}

func observedKinds() []observedKind {
	const path = "/locks/observed"
	mutex := func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
		return newMutex(t, c, path, opts...)
	}
	readWrite := func(t testing.TB, c *framework.Client, opts ...lock.Option) *lock.RWMutex {
		rw, err := lock.NewRWMutex(c, path, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return rw
	}
	write := func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
		return readWrite(t, c, opts...).Write()
	}
	semaphore := func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
		m, err := lock.NewSemaphoreMutex(c, path, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	exclusive := func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
		e, err := lock.NewUnfairMutex(c, path, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	multi := func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
		a, b := newMutex(t, c, path+"/a", opts...), newMutex(t, c, path+"/b", opts...)
		return newMulti(t, a, b)
	}
	return []observedKind{
		{name: "mutex", newLocker: mutex, reentrant: true, revocable: true},
		{
			name: "read", reentrant: true, revocable: true,
			newLocker: func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
				return readWrite(t, c, opts...).Read()
			},
			blocker: func(t testing.TB, c *framework.Client) lock.Locker { return write(t, c) },
		},
		{name: "write", newLocker: write, reentrant: true, revocable: true},
		{name: "semaphore_mutex", newLocker: semaphore, revocable: true},
		{name: "unfair_mutex", newLocker: exclusive},
		{
			name: "multi", newLocker: multi, reentrant: true,
			blocker: func(t testing.TB, c *framework.Client) lock.Locker { return newMutex(t, c, path+"/a") },
		},
	}
}
