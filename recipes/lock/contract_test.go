package lock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/locktest"
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
