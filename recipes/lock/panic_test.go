package lock_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// A panicKind makes a lock of one kind, with the options that the kind takes.
type panicKind func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker

var panicKinds = map[string]panicKind{
	"mutex": func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
		return newMutex(t, c, "/panic/mutex", opts...)
	},
	"local hand-off": func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
		return newLocal(t, newMutex(t, c, "/panic/mutex", opts...), 4)
	},
	"read": func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
		return newReadWrite(t, c, "/panic/rw", opts...).Read()
	},
	"write": panicWrite,
	"semaphore mutex": func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
		return newSemaphoreMutex(t, c, "/panic/semaphore", opts...)
	},
	"exclusive": func(t testing.TB, c *framework.Client, _ ...lock.Option) lock.Locker {
		return newExclusive(t, c, "/panic/exclusive")
	},
	"multi of one transaction": func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
		return newMulti(t, newMutex(t, c, "/panic/a", opts...), newMutex(t, c, "/panic/b", opts...), newMutex(t, c, "/panic/c", opts...))
	},
	"multi of all kinds": func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
		return newMulti(t, newMutex(t, c, "/panic/a", opts...), newMutex(t, c, "/panic/b", opts...), newExclusive(t, c, "/panic/exclusive"),
			panicWrite(t, c, opts...), newSemaphoreMutex(t, c, "/panic/semaphore", opts...))
	},
}

func panicWrite(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
	return newReadWrite(t, c, "/panic/rw", opts...).Write()
}

// TestNoOrphanWhenAFunctionOfTheUsersFails has the queue position and the ACL provider
// panic, or end their goroutine, at each of their calls in turn, in all kinds of locks.
func TestNoOrphanWhenAFunctionOfTheUsersFails(t *testing.T) {
	t.Parallel()
	failures := map[string]func(){"panic": func() { panic("by the test") }, "Goexit": runtime.Goexit}
	for kind := range panicKinds {
		for name, fail := range failures {
			for _, op := range []string{"Lock", "Lock contended", "TryLock", "TryLock contended"} {
				t.Run(kind+"/"+name+"/"+op, func(t *testing.T) {
					t.Parallel()
					for n, failed := int32(1), true; failed && !t.Failed(); n++ {
						synctest.Test(t, func(t *testing.T) { failed = panicAt(t, kind, op, n, fail) })
					}
				})
			}
		}
	}
}

// panicAt has the n-th call of a user's function fail, and reports whether there was one.
func panicAt(t *testing.T, kind, op string, n int32, fail func()) bool {
	srv := virtualServer(t)
	operator, c := virtualClient(t, srv), virtualClient(t, srv)
	var calls atomic.Int32
	called := func() {
		if calls.Add(1) == n {
			fail()
		}
	}
	failing := virtualClient(t, srv, framework.WithACLProvider(func(string) []framework.ACL { called(); return nil }))
	l := panicKinds[kind](t, failing, lock.WithQueuePosition(func(int) { called() }))
	var held *lock.Lease
	if op == "Lock contended" || op == "TryLock contended" {
		blocker := panicKinds[kind]
		if kind == "read" {
			blocker = panicWrite
		}
		held = mustLock(t, blocker(t, operator))
	}
	var done sync.WaitGroup
	done.Go(func() {
		defer func() { _ = recover() }()
		acquire := l.Lock
		if op == "TryLock" || op == "TryLock contended" {
			acquire = l.TryLock
		}
		if lease, err := acquire(t.Context()); err == nil {
			mustRelease(t, lease)
		}
	})
	synctest.Wait()
	if held != nil {
		mustRelease(t, held)
	}
	done.Wait()
	await(time.Minute)
	for _, s := range srv.Sessions() {
		if len(s.Ephemerals) > 0 {
			t.Errorf("call %d failed: orphans %q", n, s.Ephemerals)
		}
	}
	failed := calls.Swap(n) >= n // there is no further n-th call
	for who, c := range map[string]*framework.Client{"the same client": failing, "another client": c} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		lease, err := panicKinds[kind](t, c).Lock(ctx)
		cancel()
		if err != nil {
			t.Errorf("call %d failed: Lock by %s: %v", n, who, err)
			continue
		}
		mustRelease(t, lease)
	}
	return failed
}

// TestAMultiIsLeftWhenAForeignLockerPanics holds two members when the third one panics.
func TestAMultiIsLeftWhenAForeignLockerPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		m := newMulti(t, newMutex(t, c, "/panic/a"), newSemaphoreMutex(t, c, "/panic/b"), panickingLocker{})
		for _, acquire := range []func(context.Context) (*lock.Lease, error){m.Lock, m.TryLock} {
			func() {
				defer func() {
					if v := recover(); fmt.Sprint(v) != "by the test" {
						t.Errorf("recovered %v, want the locker's panic", v)
					}
				}()
				_, _ = acquire(t.Context())
			}()
			await(time.Minute)
			for _, s := range srv.Sessions() {
				if len(s.Ephemerals) > 0 {
					t.Errorf("orphans %q", s.Ephemerals)
				}
			}
		}
	})
}

// A panickingLocker is a lock of the user's own.
type panickingLocker struct{}

func (panickingLocker) Lock(context.Context) (*lock.Lease, error)    { panic("by the test") }
func (panickingLocker) TryLock(context.Context) (*lock.Lease, error) { panic("by the test") }
func (panickingLocker) Path() string                                 { return "/panic/z" }

// TestAPanicOfARevocationIsLogged has the function panic at the first of two requests.
func TestAPanicOfARevocationIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		core, logs := observer.New(zap.ErrorLevel)
		c := virtualClient(t, srv, framework.WithLogger(zap.New(core)))
		var calls atomic.Int32
		lease := mustLock(t, newMutex(t, c, "/panic/revoked", lock.WithRevocation(func(*lock.Lease) {
			if calls.Add(1) == 1 {
				panic("by the test")
			}
		})))
		for range 2 {
			if err := lock.Revoke(t.Context(), virtualClient(t, srv), lease.Node()); err != nil {
				t.Fatal(err)
			}
			await(time.Second)
		}
		if n := calls.Load(); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
		if n := logs.FilterMessage("a function of the user's panicked").Len(); n != 1 {
			t.Errorf("%d lines of the panic, want 1: %v", n, logs.All())
		}
		mustRelease(t, lease)
	})
}
