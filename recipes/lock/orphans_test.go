package lock_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
)

// multiOfAllKinds is a kind whose members are of all kinds.
var multiOfAllKinds = kind{
	name: "multi of all kinds", create: fault.Create, callbacks: true,
	lock: func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
		return newMulti(t, newMutex(t, c, path+"/a", opts...), newMutex(t, c, path+"/b", opts...), newUnfairMutex(t, c, path+"/unfair"),
			writeSideAt(t, c, path+"/rw", opts...), newSemaphoreMutex(t, c, path+"/semaphore", opts...))
	},
}

// TestNoOrphanWhenAFunctionOfTheUsersFails has the user's functions panic, or end their goroutine. Callers
// such as net/http continue after that.
// These are the queue position, the ACL provider and the retry policy, at each of their calls in turn, in all kinds
// of locks.
func TestNoOrphanWhenAFunctionOfTheUsersFails(t *testing.T) {
	t.Parallel()
	failures := map[string]func(){"panic": func() { panic("by the test") }, "Goexit": runtime.Goexit}
	for _, k := range append(slices.Clone(kinds), multiOfAllKinds) {
		for name, fail := range failures {
			for _, op := range []string{"Lock", lockUnanswered, "Lock contended", lockCrowded, "TryLock", "TryLock contended"} {
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

const (
	lockUnanswered = "Lock unanswered"            // the reply to its create is lost
	lockCrowded    = "Lock crowded and contended" // while another attempt of the client waits
)

// panicAt has the n-th call of a user's function fail, and reports whether there was one.
func panicAt(t *testing.T, k kind, op string, n int32, fail func()) bool {
	t.Helper()
	const path = "/panic"
	srv := virtualServer(t)
	operator, c := virtualClient(t, srv), virtualClient(t, srv)
	var calls atomic.Int32
	var known atomic.Bool // what the server lacks
	called := func() {
		if known.Load() && calls.Add(1) == n {
			fail()
		}
	}
	failing := virtualClient(t, srv, framework.WithACLProvider(func(string) []acl.Entry { called(); return nil }),
		framework.WithRetry(recipetest.Policy{Policy: retry.Times(3, time.Second), Note: called}))
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
	call := func(l lock.Locker) {
		done.Go(func() {
			defer func() { _ = recover() }()
			if lease, err := l.Lock(t.Context()); err == nil {
				mustRelease(t, lease)
			}
		})
		synctest.Wait()
	}
	if op == lockCrowded {
		call(k.lock(t, failing, path))
	}
	if op == lockUnanswered { // else the reply is lost of the create that finds no directory
		mustRelease(t, mustLock(t, k.lock(t, operator, path)))
	}
	known.Store(true)
	if op == lockUnanswered {
		srv.Rules().Add(fault.Rule{Session: failing.Session().ID, Op: k.create, Path: path + "/**", Action: fault.DropReply})
	}
	if strings.HasPrefix(op, "TryLock") {
		l = tryLock{l}
	}
	call(l)
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
