package lock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestNonReentrantLocks lock twice as one owner.
func TestNonReentrantLocks(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kindsThat(func(k kind) bool { return !k.reentrant }), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		c := env.Client(t)
		l := k.lock(t, c, path)
		owned := asOwner(t, "one")
		held := mustLockAs(owned, t, l)
		mustBeHeld(owned, t, l)
		ctx, cancel := context.WithTimeout(owned, 200*time.Millisecond)
		defer cancel()
		if lease, err := l.Lock(ctx); lease != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock by the owner: %v, %v; want an error that matches DeadlineExceeded", lease, err)
		}
		awaitEphemerals(t, c, path, 1)
		mustHold(t, c, held)
		released := make(chan error, 1)
		go func() { released <- held.Release(t.Context()) }() // any goroutine may
		if err := must.Receive(t, released, "the release"); err != nil {
			t.Error(err)
		}
		if err := held.Release(t.Context()); !errors.Is(err, lock.ErrReleased) {
			t.Errorf("second release: %v, want ErrReleased", err)
		}
	}, oneOfEach())
}

// singleNode are the kinds whose holder has one znode, other than in a queue at the lock's path.
func singleNode(k kind) bool { return k.name == "semaphore mutex" || k.name == "unfair mutex" }

func TestParticipantsWithoutAQueue(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kindsThat(singleNode), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		c := env.Client(t)
		l := k.lock(t, c, path)
		if found := participantsOf(t, l); len(found) != 0 {
			t.Errorf("participants of a lock that was never used: %v; want none", found)
		}
		lease := mustLockAs(asOwner(t, "job 3"), t, k.lock(t, c, path, recipes.WithData([]byte("own"))))
		found := participantsOf(t, l)
		if len(found) == 0 {
			t.Fatal("no participants; want the holder")
		}
		h := found[0]
		if !h.Holder || h.Path != lease.Node() || h.Session != c.Session().ID || string(h.Data) != "own" {
			t.Errorf("holder %+v: want it at %s, of session %#x, with the data own", h, lease.Node(), c.Session().ID)
		}
		if h.Metadata == nil || h.Metadata.Owner != "job 3" {
			t.Errorf("metadata %+v, want it to name the owner of the context", h.Metadata)
		}
		mustRelease(t, lease)
		lease = mustLock(t, k.lock(t, c, path, recipes.WithData([]byte("own")), recipes.WithoutMetadata()))
		if data, _, err := c.Get(t.Context(), lease.Node()); err != nil || string(data) != "own" {
			t.Errorf("bare data %q (%v), want own", data, err)
		}
		mustRelease(t, lease)
	}, oneOfEach())
}

// TestDirectoriesAreDeletedDuringLock deletes the empty directories just before each create of an
// acquire, as the server does with directories that are not used.
func TestDirectoriesAreDeletedDuringLock(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kindsThat(singleNode), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		operator := env.Client(t)
		creates := 1
		dirs := []string{path}
		if k.name == "semaphore mutex" {
			creates, dirs = 2, []string{path + "/leases", path + "/locks", path}
		}
		for n := range creates {
			createDirs(t, operator, dirs...)
			c, route := onRoute(t, env)
			stuck := route.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/**", Action: fault.HoldRequest, Skip: n})
			done := lockLater(t.Context(), k.lock(t, c, path))
			must.Receive(t, stuck.Hit(), "the create")
			deleteEmpty(t, operator, dirs...)
			stuck.Release()
			lease := granted(t, done, "the lock")
			mustHold(t, operator, lease)
			mustRelease(t, lease)
			if err := operator.DeleteTree(t.Context(), path); err != nil && !errors.Is(err, framework.ErrNoNode) {
				t.Fatal(err)
			}
		}
	})
}

// deleteEmpty deletes the directories that are empty, and fails the test if none is.
func deleteEmpty(t testing.TB, c *framework.Client, dirs ...string) {
	t.Helper()
	deleted := 0
	for _, dir := range dirs {
		err := c.Delete(t.Context(), dir)
		switch {
		case err == nil:
			deleted++
		case !errors.Is(err, framework.ErrNoNode) && !errors.Is(err, framework.ErrNotEmpty):
			t.Fatal(err)
		}
	}
	if deleted == 0 {
		t.Fatalf("none of %q was empty: nothing is tested", dirs)
	}
}

// TestDirectoriesAreContainers waits until the server has deleted them. An unfair mutex leaves its
// epoch, and nothing else, behind.
func TestDirectoriesAreContainers(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kinds, func(t *testing.T, env *zkenv.Env, k kind, path string) {
		c := env.Client(t)
		l := k.lock(t, c, path)
		for range 2 {
			mustRelease(t, mustLock(t, l))
			if k.name == "unfair mutex" {
				left, _, err := c.Children(t.Context(), path)
				if err != nil || !slices.Equal(left, []string{"lock.docent-epoch"}) {
					t.Errorf("left behind: %q, %v; want the epoch", left, err)
				}
				continue
			}
			zktest.Eventually(t, generous, "the directories are gone", func() bool {
				_, ok, err := c.Exists(t.Context(), path)
				return err == nil && !ok
			})
		}
	}, oneOfEach(), zkenv.AllOperations("containers are one of them"))
}
