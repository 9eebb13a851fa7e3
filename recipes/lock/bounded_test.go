package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// connectTimeout is the client's default.
const connectTimeout = 5 * time.Second

// A goneContext ends without waking a waiter. A context does so if it ends at the very moment of
// the awaited event.
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

// TestNoLeaseAfterItsContextEnded ends the context between the request that takes the lock and the
// return: there is no lease then, and no orphan.
func TestNoLeaseAfterItsContextEnded(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kinds, func(t *testing.T, env *zkenv.Env, k kind, path string) {
		observer := env.Client(t)
		for _, try := range []bool{false, true} {
			c, route := onRoute(t, env)
			l := k.lock(t, c, path)
			mustRelease(t, mustLock(t, l)) // an unfair mutex has its epoch from then on
			route.ResetRequests()
			gone := func() bool { return route.Count(fault.Create, fault.Multi) > 0 }
			attempt := l
			if try {
				attempt = tryLock{l}
			}
			lease, err := attempt.Lock(goneContext{context.WithoutCancel(t.Context()), gone})
			if lease != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("try %v: %v, %v, want no lease and context.Canceled", try, lease, err)
			}
			if wait := new(lock.WaitError); !try && !errors.As(err, &wait) {
				t.Errorf("error %v, want a WaitError", err)
			}
			awaitEphemerals(t, observer, path, 0)
			route.ResetRequests()
			mustRelease(t, mustLock(t, l)) // the lock can be had by who is there
		}
	}, oneOfEach())
}

// TestWaitError ends waits for a held lock by their context: while the client is connected, in an outage
// that began before the wait or during it, and after one.
func TestWaitError(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for _, c := range []struct {
		name                     string
		refuseAt, acceptAt, wait time.Duration // since the wait began; 0 for never
		before                   bool          // the outage begins before the wait
		connected                bool
	}{
		{name: "connected", wait: second, connected: true},
		{name: "outage before", before: true, wait: second},
		{name: "outage during", refuseAt: second, wait: 3 * second},
		{name: "outage over", refuseAt: second, acceptAt: 2 * second, wait: 20 * second, connected: true},
	} {
		for _, k := range kindsThat(kind.exclusive) {
			virtualSubtest(t, k.name+" "+c.name, func(t *testing.T, srv *zkserver.Server) {
				mustLock(t, k.lock(t, virtualClient(t, srv), "/wait"))
				l := k.lock(t, virtualClient(t, srv), "/wait")
				outage := func() { srv.Refuse(); srv.Cut() }
				if c.before {
					outage()
					synctest.Wait()
				}
				if c.refuseAt > 0 {
					defer time.AfterFunc(c.refuseAt, outage).Stop()
				}
				if c.acceptAt > 0 {
					defer time.AfterFunc(c.acceptAt, srv.Accept).Stop()
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.wait)
				defer cancel()
				_, err := l.Lock(ctx)
				srv.Accept()
				var wait *lock.WaitError
				if !errors.As(err, &wait) || !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("Lock: %v, want a WaitError of the deadline", err)
				}
				if errors.Is(err, framework.ErrNotConnected) == c.connected {
					t.Errorf("Lock: %v; connected %v", err, c.connected)
				}
				if c.before {
					return
				}
				ahead := 1
				if k.name == "unfair mutex" {
					ahead = -1 // it has no queue
				}
				if wait.Ahead != ahead {
					t.Errorf("%d ahead, want %d", wait.Ahead, ahead)
				}
				by := wait.BlockedBy
				if k.name == "semaphore mutex" {
					if by != nil {
						t.Errorf("blocked by %+v, want nobody: the wait is for a semaphore's holders", by)
					}
				} else if by == nil || !by.Holder || by.Metadata == nil {
					t.Errorf("blocked by %+v, want the holder", by)
				}
			})
		}
	}
}

// A blockedWait is a wait that its context ends.
type blockedWait struct {
	err error
	by  string // the znode that the error has to name
}

// blockedWaits return waits of c and those behind which c waits, with how many are ahead of each.
var blockedWaits = map[string]struct {
	ahead int
	wait  func(t *testing.T, srv *zkserver.Server, c, other *framework.Client) []blockedWait
}{
	"a reader behind a writer and a reader": {2, func(t *testing.T, _ *zkserver.Server, c, other *framework.Client) []blockedWait {
		held := mustLock(t, newReadWrite(t, other, "/rw").Write())
		lockLater(t.Context(), newReadWrite(t, other, "/rw").Read())
		await(time.Second)
		return []blockedWait{{errOf(newReadWrite(t, c, "/rw").Read().Lock(recipetest.Within(t, time.Second))), held.Node()}}
	}},
	"before the reply that sets the watch": {1, func(t *testing.T, srv *zkserver.Server, c, other *framework.Client) []blockedWait {
		held := mustLock(t, newMutex(t, other, "/late"))
		await(time.Second)
		srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: "/late/**", Action: fault.HoldReply})
		return []blockedWait{{errOf(newMutex(t, c, "/late").Lock(recipetest.Within(t, time.Second))), held.Node()}}
	}},
	// The last contender ahead has gone by then.
	"while the servers prove no session": {1, func(t *testing.T, srv *zkserver.Server, c, other *framework.Client) []blockedWait {
		holder := createNode(t, other, "/proven/lock-", framework.Sequential())
		waits := lockLater(recipetest.Within(t, 13*time.Second), newMutex(t, c, "/proven"))
		await(time.Second)
		srv.Rules().Add(fault.Rule{Op: fault.Multi, Action: fault.Refuse, Code: fault.Throttled, Times: fault.Forever}) // heartbeats
		await(c.Session().Timeout)
		deleteNode(t, other, holder)
		return []blockedWait{{failed(t, waits, "the end of the wait"), holder}}
	}},
	"behind a holder of the client": {-1, func(t *testing.T, _ *zkserver.Server, c, _ *framework.Client) []blockedWait {
		m := newUnfairMutex(t, c, "/gate")
		held := mustLock(t, m)
		return []blockedWait{{errOf(m.Lock(recipetest.Within(t, time.Second))), held.Node()}}
	}},
	"behind a waiter of the client": {-1, func(t *testing.T, _ *zkserver.Server, c, other *framework.Client) []blockedWait {
		return waitTwice(t, newUnfairMutex(t, c, "/gate"), mustLock(t, newUnfairMutex(t, other, "/gate")), t.Context())
	}},
	"two goroutines of one owner": {1, func(t *testing.T, _ *zkserver.Server, c, other *framework.Client) []blockedWait {
		return waitTwice(t, newMutex(t, c, "/owner"), mustLock(t, newMutex(t, other, "/owner")), asOwner(t, "worker"))
	}},
}

// waitTwice waits behind a lease by two calls of l, of which the first to come is the last to end.
func waitTwice(t *testing.T, l lock.Locker, held *lock.Lease, ctx context.Context) []blockedWait { //nolint:revive // t comes first in tests
	t.Helper()
	withdrawing, cancel := context.WithCancel(ctx)
	first := lockLater(withdrawing, l)
	await(time.Second)
	brief, end := context.WithTimeout(ctx, time.Second)
	defer end()
	second := errOf(l.Lock(brief))
	cancel()
	return []blockedWait{{second, held.Node()}, {failed(t, first, "the end of the wait"), held.Node()}}
}

// TestWaitErrorNamesTheHolder, whatever the call waits for itself at that moment.
func TestWaitErrorNamesTheHolder(t *testing.T) {
	t.Parallel()
	for name, tt := range blockedWaits {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			for _, w := range tt.wait(t, srv, virtualClient(t, srv), virtualClient(t, srv)) {
				wait := new(lock.WaitError)
				if !errors.As(w.err, &wait) || wait.Ahead != tt.ahead || wait.BlockedBy == nil || wait.BlockedBy.Path != w.by {
					t.Errorf("%v (%+v), want %d ahead, and %s to block it", w.err, wait.BlockedBy, tt.ahead, w.by)
				}
			}
		})
	}
}

// endedBy says what a context that has ended may have for a cause: errors that other
// work came to, as errgroup passes them on, and lost leases of other clients.
var endedBy = map[string]error{
	"the end of another session":       framework.ErrSessionExpired,
	"a lease that was lost":            &lock.LostError{Path: "/other", Cause: framework.ErrSessionDeadline},
	"another client that was closed":   framework.ErrClosed,
	"a znode missing somewhere else":   framework.ErrNoNode,
	"a znode existing somewhere else":  framework.ErrNodeExists,
	"a connection missing somewhere":   framework.ErrNotConnected,
	"an outcome unknown somewhere":     framework.ErrUnknownOutcome,
	"another lock that is held":        lock.ErrHeld,
	"a cancellation and nothing else":  nil,
	"a lease that was released before": lock.ErrReleased,
}

// An endedCall is a call by c's mutex at path that is on its way when end ends its context.
type endedCall struct {
	*testing.T
	srv  *zkserver.Server
	c    *framework.Client
	m    *lock.Mutex
	path string
	ctx  context.Context
	end  func()
}

// endedCalls return the error of the call.
var endedCalls = map[string]func(e endedCall) error{
	"Lock waits": func(e endedCall) error {
		held := mustLock(e, newMutex(e, virtualClient(e, e.srv), e.path))
		done := lockLater(e.ctx, e.m)
		synctest.Wait()
		if n := len(znodesBelow(e.srv, e.path)); n != 2 {
			e.Fatalf("%d contenders, want 2", n)
		}
		e.end()
		err := failed(e, done, "Lock's return")
		why := context.Cause(e.ctx)                                                                                                       // in the text once; an answer to other work is not matched
		if matched := isLoss(why) || why == e.ctx.Err(); errors.Is(err, why) != matched || strings.Count(err.Error(), why.Error()) != 1 { //nolint:errorlint // this very error
			e.Errorf("Lock: %v; want %v in it once, and matched: %t", err, why, matched)
		}
		await(time.Minute)
		mustRelease(e, held)
		return err
	},
	// If the reply to a create was lost, its znode is searched and deleted.
	"Lock searches its znode": func(e endedCall) error {
		mustRelease(e, mustLock(e, e.m))
		e.srv.Rules().Add(fault.Rule{Op: fault.Create, Path: e.path + "/*", Action: fault.DropReply})
		proving := e.srv.Rules().Add(fault.Rule{Op: fault.Multi, Action: fault.HoldRequest})
		done := lockLater(e.ctx, e.m)
		<-proving.Hit()
		listing := e.srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: e.path, Action: fault.HoldReply})
		proving.Release()
		<-listing.Hit()
		e.end()
		defer listing.Release()
		return failed(e, done, "Lock's return")
	},
	"Release is called later": func(e endedCall) error {
		lease := mustLock(e, e.m)
		e.end()
		return lease.Release(e.ctx)
	},
	"Release has no connection": func(e endedCall) error {
		lease := mustLock(e, e.m)
		cut := e.srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: e.path + "/*", Action: fault.CutBefore})
		e.srv.Refuse()
		defer e.srv.Accept()
		go func() {
			<-cut.Hit()
			e.end()
		}()
		return lease.Release(e.ctx)
	},
	// It has lost one reply.
	"Release repeats a request": func(e endedCall) error {
		lease := mustLock(e, e.m)
		e.srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: e.path + "/*", Action: fault.CutBefore})
		held := e.srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: e.path + "/*", Action: fault.HoldRequest})
		defer e.srv.Cut()
		defer held.Remove()
		go func() {
			<-held.Hit()
			e.end()
		}()
		return lease.Release(e.ctx)
	},
}

// TestEndOfContext_with_any_cause: the error is the context's, whatever its cause looks like, and no znode is
// left.
func TestEndOfContext_with_any_cause(t *testing.T) {
	t.Parallel()
	for what, call := range endedCalls {
		for name, cause := range endedBy {
			virtualSubtest(t, what+", "+name, func(t *testing.T, srv *zkserver.Server) {
				const path = "/interleaved/cause"
				c := virtualClient(t, srv)
				ctx, cancel := context.WithCancelCause(t.Context())
				err := call(endedCall{t, srv, c, newMutex(t, c, path), path, ctx, func() { cancel(cause) }})
				if !errors.Is(err, context.Canceled) || isLoss(err) && !isLoss(cause) {
					t.Errorf("%v, want an error that matches context.Canceled and is no loss", err)
				}
				mustLeaveNothing(t, srv, path)
			})
		}
	}
}

// isLoss reports whether err tells of a lost lease.
func isLoss(err error) bool { return errors.Is(err, lock.ErrLost) }
