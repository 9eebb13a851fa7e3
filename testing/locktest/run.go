package locktest

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
)

// A NewLocker makes the lock at path for a client. All that are made for one path, also
// for one client, are one lock. It fails the test if it can't.
type NewLocker func(t testing.TB, c *framework.Client, path string) lock.Locker

// Run checks all promises of the lock that newLocker makes. Each is a parallel subtest named by
// its sentence, with a subtest for each environment. As with [zkenv.ForEach], Run may return
// before they have run. It fails the test if an argument is faulty.
func Run(t *testing.T, newLocker NewLocker, opts ...Option) {
	t.Helper()
	cfg, err := newConfig(newLocker, opts)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.noTry {
		newLocker = patient(newLocker)
	}
	for _, p := range contractCases(cfg) {
		t.Run(p.sentence, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				t.Helper()
				p.check(newFixture(t, env, newLocker, cfg))
			}, append(p.envs, cfg.envs...)...)
		})
	}
}

// A contractCase is a sentence of a lock's documentation, and what finds out whether it is kept.
type contractCase struct {
	sentence string
	check    func(s *fixture)
	envs     []zkenv.Option
}

// contractCases returns those that a lock of the configuration makes.
func contractCases(cfg config) []contractCase {
	if cfg.faults {
		return requestCases()
	}
	var all []contractCase
	all = append(all, lockCases()...)
	if !cfg.noTry {
		all = append(all, tryCases()...)
	}
	all = append(all, leaseCases()...)
	all = append(all, lossCases()...)
	all = append(all, doCases()...)
	all = append(all, requestCases()...)
	if cfg.fair {
		all = append(all, fairCase())
	}
	if cfg.reentrant {
		all = append(all, reentrantCases()...)
	}
	if cfg.shared {
		all = append(all, sharedCase(cfg.permits))
	}
	return all
}
