package lock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/worlds"
)

// A goneContext ends without waking anybody, as one does that ends at the very
// moment at which what was waited for comes.
type goneContext struct {
	context.Context
	gone func() bool
}

func (c goneContext) Err() error {
	if c.gone() {
		return context.Canceled
	}
	return nil
}

// newLocks make a lock of each kind in the directory path.
var newLocks = map[string]func(*framework.Client, string) (lock.Locker, error){
	"Exclusive": func(c *framework.Client, path string) (lock.Locker, error) {
		return lock.NewUnfairMutex(c, path+"/lock")
	},
	"Mutex":          func(c *framework.Client, path string) (lock.Locker, error) { return lock.NewMutex(c, path) },
	"SemaphoreMutex": func(c *framework.Client, path string) (lock.Locker, error) { return lock.NewSemaphoreMutex(c, path) },
	"Write": func(c *framework.Client, path string) (lock.Locker, error) {
		rw, err := lock.NewRWMutex(c, path)
		if err != nil {
			return nil, err
		}
		return rw.Write(), nil
	},
}

// TestNoLeaseForWhoHasGone ends the context between the request that takes the
// lock and the return: there is no lease then, and no ghost.
func TestNoLeaseForWhoHasGone(t *testing.T) {
	t.Parallel()
	for name, newLock := range newLocks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worlds.Each(t, func(t *testing.T, w *worlds.World) {
				observer := w.Client(t)
				path := "/at-once/" + name
				for _, op := range []string{"Lock", "TryLock"} {
					c, way := onWay(t, w)
					l, err := newLock(c, path)
					if err != nil {
						t.Fatal(err)
					}
					mustRelease(t, mustLock(t, l)) // an Exclusive has its epoch from then on
					way.ResetRequests()
					gone := func() bool { return way.Count(fault.Create, fault.Multi) > 0 }
					ctx := goneContext{context.WithoutCancel(t.Context()), gone}
					attempt := l.Lock
					if op == "TryLock" {
						attempt = l.TryLock
					}
					lease, err := attempt(ctx)
					if lease != nil || !errors.Is(err, context.Canceled) {
						t.Errorf("%s: %v, %v, want no lease and context.Canceled", op, lease, err)
					}
					awaitEphemerals(t, observer, path, 0)
					way.ResetRequests()
					mustRelease(t, mustLock(t, l)) // the lock can be had by who is there
				}
			})
		})
	}
}
