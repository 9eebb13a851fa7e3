package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
)

// Under a lock of any kind, the context leads to the lease.
func TestLeaseFromContextOfAnyLock(t *testing.T) {
	t.Parallel()
	all := append(kinds(),
		kind{"Read", fault.Create, func(c *framework.Client, path string) (lock.Locker, error) {
			rw, err := lock.NewReadWrite(c, path)
			if err != nil {
				return nil, err
			}
			return rw.Read(), nil
		}},
		kind{"Multi", fault.Create, func(c *framework.Client, path string) (lock.Locker, error) {
			first, second := newMutex(t, c, path+"/1"), newMutex(t, c, path+"/2")
			return lock.NewMulti(first, second)
		}})
	for _, k := range all {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, err := k.make(virtualClient(t, virtualServer(t)), "/lease/carried")
				if err != nil {
					t.Fatal(err)
				}
				var lease *lock.Lease
				err = lock.Do(t.Context(), l, func(ctx context.Context) error {
					ctx, cancel := context.WithCancel(ctx) // as work does
					defer cancel()
					var ok bool
					if lease, ok = lock.LeaseFromContext(ctx); !ok {
						return errors.New("Do's context carries no lease")
					}
					return lease.Err()
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := lease.Err(); !errors.Is(err, lock.ErrReleased) {
					t.Errorf("the lease after Do: %v, want ErrReleased: it is the one that Do had", err)
				}
			})
		})
	}
}

// The lease is that of the innermost lock, also where both are held by leases; what is
// around them stays as it was.
func TestLeaseFromContextIsTheInnermost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := virtualClient(t, virtualServer(t))
		outer, inner := newMutex(t, c, "/lease/outer"), newMutex(t, c, "/lease/inner")
		if l, ok := lock.LeaseFromContext(t.Context()); l != nil || ok {
			t.Errorf("%v, %v of a context of no lease; want none", l, ok)
		}
		carried := func(ctx context.Context) string {
			l, ok := lock.LeaseFromContext(ctx)
			if !ok {
				return ""
			}
			return l.Path()
		}
		err := lock.Do(t.Context(), outer, func(around context.Context) error {
			lease := mustLock(t, inner)
			defer mustRelease(t, lease)
			within, cancel := lease.Context(around)
			defer cancel()
			if got := carried(within); got != inner.Path() {
				t.Errorf("within: the lease of %q, want that of %s", got, inner.Path())
			}
			if got := carried(around); got != outer.Path() {
				t.Errorf("around: the lease of %q, want that of %s", got, outer.Path())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// A context that carries the lease makes no goroutine the owner: they would all
// re-enter, and the lock would exclude none of them.
func TestLeaseFromContextIsNoOwnership(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMutex(t, virtualClient(t, virtualServer(t)), "/lease/stranger")
		err := lock.Do(t.Context(), m, func(ctx context.Context) error {
			var stranger sync.WaitGroup
			stranger.Go(func() {
				if _, ok := lock.LeaseFromContext(ctx); !ok {
					t.Error("no lease in the context of another goroutine")
				}
				if o, ok := lock.OwnerFromContext(ctx); ok {
					t.Errorf("the context carries the owner %v", o)
				}
				if n := m.Held(ctx); n != 0 {
					t.Errorf("held %d times by another goroutine, want 0", n)
				}
				if _, err := m.TryLock(ctx); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("TryLock of another goroutine: %v, want ErrHeld", err)
				}
				if err := m.Unlock(ctx); !errors.Is(err, lock.ErrNotOwner) {
					t.Errorf("Unlock of another goroutine: %v, want ErrNotOwner", err)
				}
			})
			stranger.Wait()
			return ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// Do tells that what it held was released by somebody else.
func TestDoTellsThatItsLeaseWasReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMutex(t, virtualClient(t, virtualServer(t)), "/lease/released")
		err := lock.Do(t.Context(), m, func(ctx context.Context) error {
			lease, ok := lock.LeaseFromContext(ctx)
			if !ok {
				return errors.New("Do's context carries no lease")
			}
			mustRelease(t, lease)
			if cause := context.Cause(ctx); !errors.Is(cause, lock.ErrReleased) {
				t.Errorf("fn's context ended by %v, want ErrReleased", cause)
			}
			return nil
		})
		if !errors.Is(err, lock.ErrReleased) {
			t.Errorf("Do: %v, want ErrReleased", err)
		}
	})
}
