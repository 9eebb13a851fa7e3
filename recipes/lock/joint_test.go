package lock_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/testing/zkserver"
)

// A Multi releases its members in reverse order. Neighbours of one client are released by one
// transaction, in spite of other members between them.
func TestMultiIsReleasedInReverseOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var deleted [][]string
		srv := virtualServer(t, zkserver.WithObserver(func(x zkserver.Transaction) {
			var paths []string
			for _, change := range x.Changes {
				if change.Kind == zkserver.Deleted {
					paths = append(paths, lockOf(change.Path))
				}
			}
			if paths != nil {
				mu.Lock()
				defer mu.Unlock()
				deleted = append(deleted, paths)
			}
		}))
		one, two := virtualClient(t, srv), virtualClient(t, srv)
		m := newMulti(t,
			newMutex(t, one, "/joint/a"), newMutex(t, one, "/joint/b"),
			newUnfairMutex(t, one, "/joint/c"),
			newMutex(t, one, "/joint/d"), newMutex(t, one, "/joint/e"),
			newMutex(t, two, "/joint/f"), newMutex(t, two, "/joint/g"))
		for range 2 {
			lease := mustLock(t, m)
			mu.Lock()
			deleted = nil
			mu.Unlock()
			mustRelease(t, lease)
			synctest.Wait()
			mu.Lock()
			want := [][]string{{"/joint/g", "/joint/f"}, {"/joint/e", "/joint/d"}, {"/joint/c"}, {"/joint/b", "/joint/a"}}
			if !slices.EqualFunc(deleted, want, slices.Equal) {
				t.Errorf("released as %v, want %v", deleted, want)
			}
			mu.Unlock()
		}
	})
}

// lockOf returns the lock of the test above to which a znode belongs.
func lockOf(node string) string { return node[:len("/joint/a")] }
