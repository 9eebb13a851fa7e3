package lock_test

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// TestUnfairMutexReleaseIsNoStampede counts the creates of many clients that wait
// for one lock when it is released once.
func TestUnfairMutexReleaseIsNoStampede(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path, waiters = "/unfair/stampede", 16
		held := mustLock(t, newUnfairMutex(t, virtualClient(t, srv), path))
		ctx, cancel := context.WithCancel(t.Context())
		grants := make(chan *lock.Lease, waiters)
		var wg sync.WaitGroup
		for range waiters {
			e := newUnfairMutex(t, virtualClient(t, srv), path)
			wg.Go(func() {
				if lease, err := e.Lock(ctx); err == nil {
					grants <- lease
				}
			})
		}
		await(time.Second)
		creates := srv.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.Pass, Times: fault.Forever})
		mustRelease(t, held)
		lease := must.Receive(t, grants, "the grant to one of them")
		await(time.Second)
		if n := creates.Hits() - 1; n < 1 || n > waiters/2 { // but for the release
			t.Errorf("%d creates by %d waiters at one release, want one, or a few", n, waiters)
		}
		t.Logf("%d creates by %d waiters at one release", creates.Hits()-1, waiters)
		cancel()
		wg.Wait()
		mustRelease(t, lease)
	}, zkserver.WithCommitTime(zkenv.Latency))
}

// TestUnfairMutexBehindAForeignZnode finds a znode at its path that no session
// will ever take away.
func TestUnfairMutexBehindAForeignZnode(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/foreign"
		c := env.Client(t)
		must.Get(c.Create(t.Context(), path, []byte("theirs"), framework.WithParents()))(t)
		e := newUnfairMutex(t, c, path)
		mustRefuse(t, e)
		found, err := e.Participants(t.Context())
		if err != nil || len(found) != 1 || found[0].Session != 0 || string(found[0].Data) != "theirs" {
			t.Errorf("participants %+v, %v; want the znode that is in the way, of no session", found, err)
		}
		done := lockLater(t.Context(), e)
		must.OK(t, c.Delete(t.Context(), path))
		mustRelease(t, granted(t, done, "the lock"))
	})
}

// TestUnfairMutexReleaseAfterTheEpochChanged has an operator write to the epoch, or delete it, while
// the lock is held: the release still deletes the holder's znode.
func TestUnfairMutexReleaseAfterTheEpochChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *framework.Client, string) error{
		"written": func(t *testing.T, c *framework.Client, epoch string) error {
			_, err := c.Set(t.Context(), epoch, nil, framework.AnyVersion)
			return err
		},
		"deleted": func(t *testing.T, c *framework.Client, epoch string) error {
			return c.Delete(t.Context(), epoch)
		},
	} {
		envSubtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path := "/unfair/epoch/" + name
			c := env.Client(t)
			e := newUnfairMutex(t, c, path)
			lease := mustLock(t, e)
			must.OK(t, change(t, c, zkpath.Epoch(path)))
			mustRelease(t, lease)
			if _, ok, err := c.Exists(t.Context(), path); ok || err != nil {
				t.Errorf("the znode after the release: %v, %v", ok, err)
			}
			mustRelease(t, mustTry(t, e))
		})
	}
}

// TestUnfairMutexEpochIsNoOtherLocks has the epochs of a lock be at no path that another lock can have:
// users' keys are paths, and any key may follow any other.
func TestUnfairMutexEpochIsNoOtherLocks(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		const path = "/unfair-keys/a"
		mustRelease(t, mustLock(t, newUnfairMutex(t, c, path)))
		epoch := zkpath.Epoch(path)
		for _, key := range []string{path + ".epoch", path + "-epoch", "/unfair-keys/epoch"} {
			other := newUnfairMutex(t, c, key, recipes.WithData([]byte("held")))
			mustRelease(t, mustTry(t, other)) // after the first lock was used
			held := mustTry(t, other)
			mustRelease(t, mustTry(t, newUnfairMutex(t, c, path))) // while the other is held
			found := must.Get(other.Participants(t.Context()))(t)
			if len(found) != 1 || string(found[0].Data) != "held" || found[0].Metadata == nil {
				t.Errorf("holder of %s after a lock of %s: %+v, want its data and metadata", key, path, found)
			}
			mustRelease(t, held)
		}
		view := must.Get(c.Namespace(strings.TrimPrefix(epoch, "/")))(t)
		for name, target := range map[string]struct {
			client *framework.Client
			path   string
		}{
			"the epoch": {c, epoch}, "below the epoch": {c, epoch + "/b"}, "in a namespace": {view, "/b"},
		} {
			for kind, construct := range map[string]func() error{
				"mutex":           func() error { _, err := lock.NewMutex(target.client, target.path); return err },
				"unfair mutex":    func() error { _, err := lock.NewUnfairMutex(target.client, target.path); return err },
				"semaphore mutex": func() error { _, err := lock.NewSemaphoreMutex(target.client, target.path); return err },
				"read/write lock": func() error { _, err := lock.NewRWMutex(target.client, target.path); return err },
			} {
				if err := construct(); err == nil || !strings.Contains(err.Error(), "is the epoch of another lock") {
					t.Errorf("new %s at %s: %v, want a refusal", kind, name, err)
				}
			}
		}
	}, oneOfEach())
}

// The reply to the create is lost. Before the client is connected again, another client asks the holder to
// release, which replaces the data of the znode. The client must not wait for its own znode, nor leave it.
func TestUnfairMutexOwnZnodeIsRevokedBeforeItIsFound(t *testing.T) {
	for name, call := range map[string]func(m *lock.UnfairMutex, ctx context.Context) (*lock.Lease, error){
		"Lock":      (*lock.UnfairMutex).Lock,
		"TryLock":   (*lock.UnfairMutex).TryLock,
		"withdrawn": (*lock.UnfairMutex).Lock,
	} {
		for _, opts := range [][]lock.Option{nil, {recipes.WithoutMetadata()}} {
			virtualSubtest(t, fmt.Sprintf("%s with %d options", name, len(opts)), func(t *testing.T, srv *zkserver.Server) {
				proxy := behindPipe(t, srv)
				c, other := newClient(t, proxy.Addr(), framework.WithDialer(proxy.Dial)), virtualClient(t, srv)
				m := newUnfairMutex(t, c, "/u", opts...)
				mustRelease(t, mustLock(t, m)) // the epoch exists
				lost := proxy.Rules().Add(fault.Rule{Op: fault.Multi, Action: fault.DropReply})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				done := recipetest.Later(ctx, func(ctx context.Context) (*lock.Lease, error) { return call(m, ctx) })
				<-lost.Hit()
				proxy.Refuse()
				await(time.Second)
				held := must.Get(newUnfairMutex(t, other, "/u").Participants(t.Context()))(t)
				must.OK(t, lock.Revoke(t.Context(), other, held[0].Path))
				if name == "withdrawn" {
					cancel()
					await(time.Second)
				}
				proxy.Heal()
				switch got := <-done; {
				case name == "withdrawn":
					wantErr(t, "Lock", got.Err, context.Canceled)
				case got.Err != nil:
					t.Errorf("%s: %v, want the lock, whose znode is the call's own", name, got.Err)
				default:
					mustRelease(t, got.Lease)
				}
				await(time.Minute)
				if slices.Contains(srv.Paths(), "/u") {
					t.Error("the znode exists a minute later")
				}
			})
		}
	}
}

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

// TestUnfairMutexGateEndsWithTheClient has a call wait for the gate while the client closes, also if the client has
// as many deletions pending as it keeps.
func TestUnfairMutexGateEndsWithTheClient(t *testing.T) {
	t.Parallel()
	for name, pending := range map[string]int64{"no deletion pending": 0, "a full queue of deletions": 1 << 16} {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			c := virtualClient(t, srv)
			e := newUnfairMutex(t, c, "/seat", recipes.WithoutMetadata(), recipes.WithData([]byte("same")))
			lease := mustLock(t, e)
			srv.Refuse()
			srv.Cut()
			bound := c.InSession(c.Session().ID)
			for i := range pending {
				bound.Discard("/none", framework.CreatedBy(i+1))
			}
			wantErr(t, "Release", lease.Release(dead(t)), context.Canceled)
			wantErr(t, "TryLock while the former znode exists", errOf(e.TryLock(t.Context())), lock.ErrHeld)
			waiting := lockLater(t.Context(), e)
			synctest.Wait()
			wantErr(t, "Close without a server", c.Close(), framework.ErrUnknownOutcome)
			wantErr(t, "Lock", failed(t, waiting, "the end of Lock"), framework.ErrClosed)
		})
	}
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
		wantErr(f, "transaction with its guard", recipetest.Err(f.c.Txn(f.Context(), lease.Guard())), framework.ErrBadVersion)
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
		envSubtest(t, name, func(t *testing.T, env *zkenv.Env) {
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
	}
}
