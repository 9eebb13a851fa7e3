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
	names := map[string]string{ // of the golden files
		"mutex": "mutex", "read side": "read", "write side": "write", "semaphore mutex": "semaphore_mutex",
	}
	var all []observedKind
	for _, k := range kinds {
		if names[k.name] == "" {
			continue
		}
		observed := observedKind{name: names[k.name], reentrant: k.reentrant, revocable: k.callbacks}
		observed.newLocker = func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
			return k.lock(t, c, path, opts...)
		}
		observed.blocker = func(t testing.TB, c *framework.Client) lock.Locker { return k.rivalOf(t, c, path) }
		all = append(all, observed)
	}
	return append(all, observedKind{
		name: "unfair_mutex",
		newLocker: func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
			return newUnfairMutex(t, c, path, opts...)
		},
	}, observedKind{
		name: "multi", reentrant: true,
		newLocker: func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
			return newMulti(t, newMutex(t, c, path+"/a", opts...), newMutex(t, c, path+"/b", opts...))
		},
		blocker: func(t testing.TB, c *framework.Client) lock.Locker { return newMutex(t, c, path+"/a") },
	})
}
