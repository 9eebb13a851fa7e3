package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/locktest"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// A newKind makes a lock of a kind, with options.
type newKind func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker

// with returns what makes locks with the options, for package locktest.
func (n newKind) with(opts ...lock.Option) locktest.NewLocker {
	return func(t testing.TB, c *framework.Client, path string) lock.Locker {
		t.Helper()
		return n(t, c, path, opts...)
	}
}

// TestContract checks what all kinds of locks promise, and what each does beyond.
func TestContract(t *testing.T) {
	t.Parallel()
	eachKind(t, kinds, func(t *testing.T, k kind) {
		var opts []locktest.Option
		if k.rival != nil {
			opts = append(opts, locktest.Shared(newKind(k.rival).with()))
		}
		if k.fair {
			opts = append(opts, locktest.Fair())
		}
		if k.reentrant {
			opts = append(opts, locktest.Reentrant())
		}
		locktest.Run(t, newKind(k.lock).with(), opts...)
	})
}

// TestNoOrphanAtAnyRequest has each fault meet each request of acquires that TestContract does not
// have: its kinds of locks behind others, or without metadata by which to find a znode again.
func TestNoOrphanAtAnyRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lock, rival locktest.NewLocker
	}{
		"a writer behind a reader":       {newKind(writeSideAt).with(), newKind(readSideAt).with()},
		"a downgrade":                    {downgradeAt, newKind(writeSideAt).with()},
		"a multi behind its second":      {newKind(multiAt).with(), secondMemberAt},
		"an unfair mutex without data":   {newKind(unfairMutexAt).with(recipes.WithoutMetadata()), nil},
		"a semaphore mutex without data": {newKind(semaphoreMutexAt).with(recipes.WithoutMetadata()), nil},
		"a semaphore mutex at once":      {usedSemaphoreMutexAt, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := []locktest.Option{locktest.FaultsOnly()}
			if c.rival != nil {
				opts = append(opts, locktest.Behind(c.rival))
			}
			locktest.Run(t, c.lock, opts...)
		})
	}
}

// secondMemberAt returns the second member of multiAt.
func secondMemberAt(t testing.TB, c *framework.Client, path string) lock.Locker {
	t.Helper()
	return newMutex(t, c, path+"/b")
}

// usedSemaphoreMutexAt returns one that has been locked, so that it begins without a place in the queue.
func usedSemaphoreMutexAt(t testing.TB, c *framework.Client, path string) lock.Locker {
	t.Helper()
	m := newSemaphoreMutex(t, c, path)
	if lease, err := m.TryLock(t.Context()); err == nil {
		mustRelease(t, lease)
	}
	return m
}

// A downgrade is a read side that is acquired by the holder of the write side.
type downgrade struct{ rw *lock.RWMutex }

func downgradeAt(t testing.TB, c *framework.Client, path string) lock.Locker {
	t.Helper()
	return downgrade{newReadWrite(t, c, path)}
}

func (d downgrade) Lock(ctx context.Context) (*lock.Lease, error) {
	return d.from(ctx, d.rw.Write().Lock, d.rw.Read().Lock)
}

func (d downgrade) TryLock(ctx context.Context) (*lock.Lease, error) {
	return d.from(ctx, d.rw.Write().TryLock, d.rw.Read().TryLock)
}

func (d downgrade) from(ctx context.Context, write, read func(context.Context) (*lock.Lease, error)) (*lock.Lease, error) {
	writing, err := write(ctx)
	if err != nil {
		return nil, err
	}
	reading, err := read(ctx)
	if failed := writing.Release(ctx); failed != nil && err == nil {
		return nil, errors.Join(failed, reading.Release(ctx))
	}
	return reading, err
}

// singleNode are the kinds whose holder has one znode, other than in a queue at the lock's path.
func singleNode(k kind) bool { return k.name == "semaphore mutex" || k.name == "unfair mutex" }

// TestDirectoriesAreDeletedDuringLock deletes the empty directories just before each create of an
// acquire, as the server does with directories that are not used. Each time the path is another: a server
// that has found an empty container deletes what is at its path a moment later, if that has no children,
// and so may delete the directories that the test has made there again.
func TestDirectoriesAreDeletedDuringLock(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kindsThat(singleNode), func(t *testing.T, env *zkenv.Env, k kind, dir string) {
		operator := env.Client(t)
		creates := 1
		if k.name == "semaphore mutex" {
			creates = 2
		}
		for n := range creates {
			path := fmt.Sprint(dir, n)
			dirs := []string{path}
			if k.name == "semaphore mutex" {
				dirs = []string{path + "/leases", path + "/locks", path}
			}
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
	}, oneOfEach())
}
