package locktest

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/worlds"
)

// A NewLocker makes the lock at path for a client. All that are made for one path, also
// for one client, are one lock. It fails the test if it can't.
type NewLocker func(t testing.TB, c *framework.Client, path string) lock.Locker

// Run checks all promises of the lock that newLocker makes, each as a parallel subtest by
// the sentence that is checked, with a subtest for each world. As with
// [worlds.Each], it may return before they have run. It fails the test if
// an argument is faulty.
func Run(t *testing.T, newLocker NewLocker, opts ...Option) {
	t.Helper()
	cfg, err := newConfig(newLocker, opts)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.noTry {
		newLocker = patient(newLocker)
	}
	for _, p := range promises(cfg) {
		t.Run(p.sentence, func(t *testing.T) {
			t.Parallel()
			worlds.Each(t, func(t *testing.T, w *worlds.World) {
				t.Helper()
				p.check(newScene(t, w, newLocker, cfg))
			}, append(p.worlds, cfg.worlds...)...)
		})
	}
}

// A promise is a sentence of a lock's documentation, and what finds out whether it is kept.
type promise struct {
	sentence string
	check    func(s *scene)
	worlds   []worlds.Option
}

// promises returns those that a lock of the configuration makes.
func promises(cfg config) []promise {
	if cfg.faults {
		return requestPromises()
	}
	var all []promise
	all = append(all, lockPromises()...)
	if !cfg.noTry {
		all = append(all, tryPromises()...)
	}
	all = append(all, leasePromises()...)
	all = append(all, lossPromises()...)
	all = append(all, doPromises()...)
	all = append(all, requestPromises()...)
	if cfg.fair {
		all = append(all, fairPromise())
	}
	if cfg.reentrant {
		all = append(all, reentrantPromises()...)
	}
	if cfg.shared {
		all = append(all, sharedPromise())
	}
	return all
}
