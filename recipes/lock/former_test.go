package lock_test

import (
	"context"
	"maps"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// TestUnfairMutexNeverTakesItsFormerZnode releases with a dead context while the deletion
// can't be sent, and locks again with the same data, where the first reply is lost.
func TestUnfairMutexNeverTakesItsFormerZnode(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/seat"
		c := virtualClient(t, srv)
		e := newUnfairMutex(t, c, path, recipes.WithoutMetadata(), recipes.WithData([]byte("same")))
		first := mustLock(t, e)
		before := first.Fence()
		undeletable := []*fault.Handle{
			srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: path, Action: fault.CutBefore, Times: fault.Forever}),
			srv.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.CutBefore, Times: fault.Forever}),
		}
		wantErr(t, "Release", first.Release(dead(t)), context.Canceled)
		wantErr(t, "TryLock while the former znode exists", errOf(e.TryLock(t.Context())), lock.ErrHeld)
		srv.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.DropReply})
		again := lockLater(t.Context(), e)
		await(10 * time.Second)
		mustWaitStill(t, "while the former znode exists", again)
		for _, rule := range undeletable {
			rule.Remove()
		}
		second := must.Receive(t, again, "the lock")
		if second.Err != nil {
			t.Fatal(second.Err)
		}
		if after := second.Lease.Fence(); after <= before {
			t.Errorf("fence %d after %d", after, before)
		}
		mustHold(t, c, second.Lease)
		mustRelease(t, second.Lease)
	})
}

// TestUnfairMutexGateOutlastsARefusedDeletion keeps the client from deleting its znode.
func TestUnfairMutexGateOutlastsARefusedDeletion(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const dir = "/seat-refused"
		operator, c := virtualClient(t, srv), virtualClient(t, srv)
		noDelete := framework.WithACL(acl.Entry{Perms: acl.All &^ acl.Delete, Scheme: "world", ID: "anyone"})
		must.Get(operator.Create(t.Context(), dir, nil, noDelete))(t)
		e := newUnfairMutex(t, c, dir+"/lock")
		wantErr(t, "Release", mustLock(t, e).Release(t.Context()), framework.ErrNoAuth)
		mustRefuse(t, e)
		must.Get(operator.SetACL(t.Context(), dir, acl.Open(), framework.AnyVersion))(t)
		mustRelease(t, mustLock(t, e)) // the deletion is repeated until it is allowed
	})
}

// TestUnfairMutexGateEndsWithTheClient has a call wait for the gate while the client closes.
func TestUnfairMutexGateEndsWithTheClient(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		e := newUnfairMutex(t, c, "/seat-closed")
		lease := mustLock(t, e)
		srv.Refuse()
		srv.Cut()
		wantErr(t, "Release", lease.Release(dead(t)), context.Canceled)
		waiting := lockLater(t.Context(), e)
		synctest.Wait()
		wantErr(t, "Close without a server", c.Close(), framework.ErrUnknownOutcome)
		wantErr(t, "Lock", failed(t, waiting, "the end of Lock"), framework.ErrClosed)
	})
}

// TestUnfairMutexGate_with_a_full_queue_of_deletions releases while the client has as many deletions
// pending as it keeps.
func TestUnfairMutexGate_with_a_full_queue_of_deletions(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/seat-full"
		c := virtualClient(t, srv)
		e := newUnfairMutex(t, c, path, recipes.WithoutMetadata(), recipes.WithData([]byte("same")))
		lease := mustLock(t, e)
		srv.Refuse()
		srv.Cut()
		bound := c.InSession(c.Session().ID)
		for i := range 1 << 16 { // all that the client keeps
			bound.Discard("/none", framework.CreatedBy(int64(i+1)))
		}
		wantErr(t, "Release", lease.Release(dead(t)), context.Canceled)
		wantErr(t, "TryLock while the former znode exists", errOf(e.TryLock(t.Context())), lock.ErrHeld)
		wantErr(t, "Close without a server", c.Close(), framework.ErrUnknownOutcome)
	})
}

// A formerCase is an UnfairMutex of a client, of which a request is late or lost, and one of another client.
// Both write the same data, so that only the sessions and the fences tell their znodes apart.
type formerCase struct {
	*testing.T
	path      string
	c, other  *framework.Client
	route     *zkenv.Route // of c
	e, theirs *lock.UnfairMutex
}

// multi has the action meet the next transaction about the lock: a create or a deletion.
func (f *formerCase) multi(action fault.Action) *fault.Handle {
	return f.route.Rules().Add(fault.Rule{Op: fault.Multi, Path: f.path, Action: action})
}

// withdraw locks, and ends the context when the rule is hit.
func (f *formerCase) withdraw(hit *fault.Handle) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	done := lockLater(ctx, f.e)
	must.Receive(f, hit.Hit(), "the create")
	cancel()
	wantErr(f, "Lock", failed(f, done, "the end of Lock"), context.Canceled)
}

// later makes the call on another goroutine.
func later(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

// releaseUnheard has c's release reach the server, and no reply reach c, until the other client has the lock.
func (f *formerCase) releaseUnheard(ctx context.Context) (next *lock.Lease, released <-chan error) {
	f.Helper()
	lease := mustLock(f, f.e)
	lost := f.multi(fault.HoldReply)
	released = later(func() error { return lease.Release(ctx) })
	must.Receive(f, lost.Hit(), "the deletion")
	f.route.Refuse()
	f.route.Cut()
	return mustLock(f, f.theirs), released
}

// formerCases return the lease that is held in the end.
var formerCases = map[string]func(f *formerCase) *lock.Lease{
	"the reply to the release is lost": func(f *formerCase) *lock.Lease {
		next, released := f.releaseUnheard(f.Context())
		f.route.Heal()
		wantErr(f, "Release of a znode that is gone", must.Receive(f, released, "the release"), nil)
		return next
	},
	"the reply to the release is lost, and its context ends": func(f *formerCase) *lock.Lease {
		ctx, cancel := context.WithTimeout(f.Context(), 300*time.Millisecond)
		defer cancel()
		next, released := f.releaseUnheard(ctx)
		wantErr(f, "Release", must.Receive(f, released, "the release"), context.DeadlineExceeded)
		f.route.Heal()
		return next
	},
	"the create is late, and its context ends": func(f *formerCase) *lock.Lease {
		stuck := f.multi(fault.HoldRequest)
		f.withdraw(stuck)
		next := mustTry(f, f.theirs)
		stuck.Release()
		return next
	},
	"the connection is lost before the create": func(f *formerCase) *lock.Lease {
		cut := f.multi(fault.CutBefore)
		hang := f.route.Rules().Add(fault.Rule{Op: fault.Multi, Path: "/zookeeper/**", Action: fault.HoldRequest})
		tried := later(func() error { return errOf(f.e.TryLock(f.Context())) })
		must.Receive(f, cut.Hit(), "the create")
		must.Receive(f, hang.Hit(), "the search for its znode")
		next := mustTry(f, f.theirs)
		hang.Release()
		wantErr(f, "TryLock", must.Receive(f, tried, "TryLock"), lock.ErrHeld)
		return next
	},
	"another waiter is faster": func(f *formerCase) *lock.Lease {
		held := mustLock(f, f.theirs)
		waiting := lockLater(f.Context(), f.e)
		awaitWait(f, f.route, f.path)
		late := f.multi(fault.HoldRequest)
		mustRelease(f, held)
		must.Receive(f, late.Hit(), "the create")
		held = mustLock(f, f.theirs)
		late.Release()
		mustWait(f, "behind the faster one", waiting)
		mustRelease(f, held)
		return granted(f, waiting, "the lock")
	},
	"an operator deletes the holder's znode": func(f *formerCase) *lock.Lease {
		lease := mustLock(f, f.e)
		waiting := lockLater(f.Context(), f.theirs)
		deleteNode(f, f.other, f.path)
		next := granted(f, waiting, "the lock")
		must.Receive(f, lease.Lost(), "the loss")
		wantErr(f, "lease", lease.Err(), lock.ErrNodeDeleted)
		wantErr(f, "Release", lease.Release(f.Context()), lock.ErrNodeDeleted)
		return next
	},
	"an operator deletes the znode before the release does": func(f *formerCase) *lock.Lease {
		lease := mustLock(f, f.e)
		stuck := f.multi(fault.HoldRequest)
		released := later(func() error { return lease.Release(f.Context()) })
		must.Receive(f, stuck.Hit(), "the deletion")
		deleteNode(f, f.other, f.path)
		next := mustLock(f, f.theirs)
		stuck.Release()
		wantErr(f, "Release", must.Receive(f, released, "the release"), lock.ErrNodeDeleted)
		return next
	},
	"an operator deletes the znode before the clean-up does": func(f *formerCase) *lock.Lease {
		mustRelease(f, mustLock(f, f.e))
		lost := f.multi(fault.HoldReply)
		stuck := f.route.Rules().Add(fault.Rule{Op: fault.Multi, Path: f.path, Action: fault.HoldRequest})
		f.withdraw(lost)
		lost.Release()
		must.Receive(f, stuck.Hit(), "the deletion")
		deleteNode(f, f.other, f.path)
		next := mustLock(f, f.theirs)
		stuck.Release()
		return next
	},
}

// TestUnfairMutexTakesNothingFromOthers: when all that a client has sent or has yet to delete is done, the
// next holder has its znode, whether that is another client or the same one.
func TestUnfairMutexTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	cases := maps.Clone(formerCases)
	for _, action := range []fault.Action{fault.HoldRequest, fault.HoldReply, fault.DropReply, fault.CutBefore} {
		cases["the same client locks after "+action.String()] = func(f *formerCase) *lock.Lease {
			stuck := f.multi(action)
			f.withdraw(stuck)
			second := lockLater(f.Context(), f.e)
			stuck.Release()
			return granted(f, second, "the lock")
		}
	}
	for name, play := range cases {
		t.Run(name, func(t *testing.T) {
			inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
				c, route := onRoute(t, env)
				f := &formerCase{T: t, path: anyPath("/unfair-former"), c: c, other: env.Client(t), route: route}
				createDirs(t, c, path.Dir(f.path))
				same := []lock.Option{recipes.WithoutMetadata(), recipes.WithData([]byte("same"))}
				f.e, f.theirs = newUnfairMutex(t, c, f.path, same...), newUnfairMutex(t, f.other, f.path, same...)
				held := play(f)
				zktest.Eventually(t, generous, "the deletions are done", func() bool { return c.PendingDeletes() == 0 })
				mustHold(t, f.other, held)
				mustRelease(t, held)
			})
		})
	}
}
