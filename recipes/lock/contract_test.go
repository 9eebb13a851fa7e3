package lock_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/locktest"
)

// TestContract checks what all kinds of locks promise, and what each does beyond.
func TestContract(t *testing.T) {
	t.Parallel()
	mutex := func(t testing.TB, c *framework.Client, path string) lock.Locker { return newMutex(t, c, path) }
	local := func(t testing.TB, c *framework.Client, path string) lock.Locker {
		return newLocal(t, newMutex(t, c, path), 3)
	}
	semaphore := func(t testing.TB, c *framework.Client, path string) lock.Locker { return newSemaphoreMutex(t, c, path) }
	exclusive := func(t testing.TB, c *framework.Client, path string) lock.Locker { return newExclusive(t, c, path) }
	read := func(t testing.TB, c *framework.Client, path string) lock.Locker {
		return newReadWrite(t, c, path).Read()
	}
	write := func(t testing.TB, c *framework.Client, path string) lock.Locker {
		return newReadWrite(t, c, path).Write()
	}
	multi := func(t testing.TB, c *framework.Client, path string) lock.Locker {
		return newMulti(t, newMutexes(t, c, path+"/a", path+"/b", path+"/c")...)
	}
	kinds := []struct {
		name      string
		newLocker locktest.NewLocker
		opts      []locktest.Option
	}{
		{"mutex", mutex, []locktest.Option{locktest.Fair(), locktest.Reentrant()}},
		{"local", local, []locktest.Option{locktest.Fair()}},
		{"semaphore mutex", semaphore, []locktest.Option{locktest.Fair()}},
		{"exclusive", exclusive, nil},
		{"read side", read, []locktest.Option{locktest.Reentrant(), locktest.Shared(write)}},
		{"write side", write, []locktest.Option{locktest.Fair(), locktest.Reentrant()}},
		{"multi", multi, []locktest.Option{locktest.Fair(), locktest.Reentrant()}},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			locktest.Run(t, kind.newLocker, kind.opts...)
		})
	}
}
