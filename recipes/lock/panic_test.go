package lock_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
)

// multiOfAllKinds is a kind whose members are of all kinds.
var multiOfAllKinds = kind{
	name: "multi of all kinds", callbacks: true,
	lock: func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
		return newMulti(t, newMutex(t, c, path+"/a", opts...), newMutex(t, c, path+"/b", opts...), newUnfairMutex(t, c, path+"/unfair"),
			writeSideAt(t, c, path+"/rw", opts...), newSemaphoreMutex(t, c, path+"/semaphore", opts...))
	},
}

// TestNoOrphanWhenAFunctionOfTheUsersFails has the user's functions panic, or end their goroutine.
// These are the queue position and the ACL provider, at each of their calls in turn, in all kinds
// of locks.
func TestNoOrphanWhenAFunctionOfTheUsersFails(t *testing.T) {
	t.Parallel()
	failures := map[string]func(){"panic": func() { panic("by the test") }, "Goexit": runtime.Goexit}
	for _, k := range append(slices.Clone(kinds), multiOfAllKinds) {
		for name, fail := range failures {
			for _, op := range []string{"Lock", "Lock contended", "TryLock", "TryLock contended"} {
				t.Run(k.name+"/"+name+"/"+op, func(t *testing.T) {
					t.Parallel()
					for n, failed := int32(1), true; failed && !t.Failed(); n++ {
						synctest.Test(t, func(t *testing.T) { failed = panicAt(t, k, op, n, fail) })
					}
				})
			}
		}
	}
}

// panicAt has the n-th call of a user's function fail, and reports whether there was one.
func panicAt(t *testing.T, k kind, op string, n int32, fail func()) bool {
	t.Helper()
	const path = "/panic"
	srv := virtualServer(t)
	operator, c := virtualClient(t, srv), virtualClient(t, srv)
	var calls atomic.Int32
	called := func() {
		if calls.Add(1) == n {
			fail()
		}
	}
	failing := virtualClient(t, srv, framework.WithACLProvider(func(string) []acl.Entry { called(); return nil }))
	var opts []lock.Option
	if k.callbacks {
		opts = append(opts, recipes.WithQueuePosition(func(int) { called() }))
	}
	l := k.lock(t, failing, path, opts...)
	var held *lock.Lease
	if strings.HasSuffix(op, "contended") {
		held = mustLock(t, k.rivalOf(t, operator, path))
	}
	var done sync.WaitGroup
	done.Go(func() {
		defer func() { _ = recover() }()
		if strings.HasPrefix(op, "TryLock") {
			l = tryLock{l}
		}
		if lease, err := l.Lock(t.Context()); err == nil {
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
		lease, err := k.lock(t, c, path).Lock(ctx)
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
		lease := mustLock(t, newMutex(t, c, "/panic/revoked", recipes.WithRevocation(func(*lock.Lease) {
			if calls.Add(1) == 1 {
				panic("by the test")
			}
		})))
		for range 2 {
			must.OK(t, lock.Revoke(t.Context(), virtualClient(t, srv), lease.Node()))
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
