package lock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// TestOwnSessionOnly loses the reply to the create, then ends the session before the client is
// back. No znode of the old session that still exists, or was listed, may be granted (CURATOR-604).
func TestOwnSessionOnly(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kinds, func(t *testing.T, env *zkenv.Env, k kind, path string) {
		c, route := onRoute(t, env)
		l := k.lock(t, c, path)
		mustRelease(t, mustLock(t, l))
		before := c.Session().ID
		lost := route.Rules().Add(fault.Rule{Op: k.create, Path: path + "/**", Action: fault.HoldReply})
		done := lockLater(t.Context(), l)
		must.Receive(t, lost.Hit(), "the create's reply")
		route.Expire(t)
		lease := granted(t, done, "the lock in the next session")
		now := c.Session().ID
		st, ok, err := c.Exists(t.Context(), firstOf(lease).Node())
		if now == before || err != nil || !ok || st.EphemeralOwner != now {
			t.Errorf("the znode belongs to session %#x (%v, %v), want %#x, other than %#x", st.EphemeralOwner, ok, err, now, before)
		}
		mustRelease(t, lease)
		awaitEphemerals(t, env.Client(t), path, 0)
	}, oneOfEach())
}

// TestOldSessionsNodeOfTheSameAttemptIsNotTaken leaves a node with the attempt's name in the
// directory. It belongs to another session, as a lagging server would list the node of the
// client's previous session.
func TestOldSessionsNodeOfTheSameAttemptIsNotTaken(t *testing.T) {
	t.Parallel()
	const path = "/own/old"
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c, route := onRoute(t, env)
		other := env.Client(t)
		cut := route.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.CutBefore, Skip: 0})
		hang := route.Rules().Add(fault.Rule{Op: fault.Sync, Path: path, Action: fault.HoldRequest})
		done := lockLater(t.Context(), newMutex(t, c, path))
		must.Receive(t, cut.Hit(), "the create")
		must.Receive(t, hang.Hit(), "the search for its node")
		name := createdName(t, route.Proxy)
		must.Get(other.Create(t.Context(), name+"0000000000", nil, framework.Ephemeral(), framework.WithParents()))(t)
		hang.Release()
		awaitContenders(t, other, path, 2)
		if names := contenders(t, other, path); !strings.HasPrefix(names[0], name[len(path)+1:]) {
			t.Fatalf("contenders %v, want two of the attempt's name", names)
		}
		mustWaitStill(t, "behind a foreign node", done)
		must.OK(t, other.Delete(t.Context(), name+"0000000000"))
		lease := granted(t, done, "the lock once the other node is gone")
		if lease.Node() == name+"0000000000" {
			t.Error("granted on another session's node")
		}
		mustRelease(t, lease)
	})
}

// createdName returns the path of the latest create that was asked for.
func createdName(t testing.TB, proxy *zkproxy.Proxy) string {
	t.Helper()
	name := ""
	for _, rq := range proxy.Requests() {
		if rq.Op == fault.Create && strings.HasSuffix(rq.Path, "-lock-") {
			name = rq.Path
		}
	}
	if name == "" {
		t.Fatal("no create was seen")
	}
	return name
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
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		wantErr(t, "Release", first.Release(dead), context.Canceled)
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
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		wantErr(t, "Release", lease.Release(dead), context.Canceled)
		waiting := lockLater(t.Context(), e)
		synctest.Wait()
		must.OK(t, c.Close())
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
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		wantErr(t, "Release", lease.Release(dead), context.Canceled)
		wantErr(t, "TryLock while the former znode exists", errOf(e.TryLock(t.Context())), lock.ErrHeld)
		must.OK(t, c.Close())
	})
}

// A failingSpan is a span of the user's whose functions panic.
type failingSpan struct{ trace.Span }

func (failingSpan) SpanContext() trace.SpanContext { panic("by the test") }
func (failingSpan) IsRecording() bool              { return true }

// TestUnfairMutexGate_after_a_panic has the metadata's traceparent panic.
func TestUnfairMutexGate_after_a_panic(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		tracer := new(failingTracer)
		c := virtualClient(t, srv, framework.WithTracerProvider(tracer))
		e := newUnfairMutex(t, c, "/seat-panic")
		for range 2 {
			tracer.fails.Store(true)
			func() {
				defer func() {
					if recover() == nil {
						t.Error("TryLock did not panic")
					}
				}()
				_, _ = e.TryLock(t.Context())
			}()
			tracer.fails.Store(false)
			mustRelease(t, mustTry(t, e))
		}
	})
}

// A failingTracer starts spans that panic, if it is to.
type failingTracer struct {
	noop.TracerProvider
	fails atomic.Bool
}

func (f *failingTracer) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return tracerOf{f: f}
}

type tracerOf struct {
	noop.Tracer
	f *failingTracer
}

func (tr tracerOf) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx, span := tr.Tracer.Start(ctx, name, opts...)
	if tr.f.fails.Load() {
		span = failingSpan{span}
	}
	return ctx, span
}

// TestUnfairMutexRelease_after_a_lost_reply loses the reply to the deletion and keeps the
// holder away until another client has the lock.
func TestUnfairMutexRelease_after_a_lost_reply(t *testing.T) {
	t.Parallel()
	for name, patience := range map[string]time.Duration{"waited-for": generous, "in-the-background": 300 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				path := "/unfair/successor/" + name
				c, route := onRoute(t, env)
				lease := mustLock(t, newUnfairMutex(t, c, path))
				lost := route.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.HoldReply})
				released := make(chan error, 1)
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					released <- lease.Release(ctx)
				}()
				must.Receive(t, lost.Hit(), "the deletion")
				route.Refuse()
				route.Cut()
				successor := env.Client(t)
				next := mustLock(t, newUnfairMutex(t, successor, path))
				var err error
				if patience < generous {
					err = must.Receive(t, released, "the release")
					route.Heal()
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("release: %v, want an error that matches DeadlineExceeded", err)
					}
				} else {
					route.Heal()
					if err = must.Receive(t, released, "the release"); err != nil {
						t.Errorf("release: %v, want nil: the znode is gone", err)
					}
				}
				zktest.Eventually(t, generous, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
				mustHold(t, successor, next)
				mustRelease(t, next)
			})
		})
	}
}

// TestUnfairMutexCleanUp_with_another_holder withdraws with the create on its way, before which
// another client acquires the lock.
func TestUnfairMutexCleanUp_with_another_holder(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/clean-up"
		c, proxy := onRoute(t, env)
		stuck := proxy.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.HoldRequest})
		ctx, cancel := context.WithCancel(t.Context())
		done := lockLater(ctx, newUnfairMutex(t, c, path, recipes.WithoutMetadata(), recipes.WithData([]byte("same"))))
		must.Receive(t, stuck.Hit(), "the create")
		cancel()
		wantErr(t, "Lock", failed(t, done, "the end of Lock"), context.Canceled)
		other := env.Client(t)
		lease := mustTry(t, newUnfairMutex(t, other, path, recipes.WithoutMetadata(), recipes.WithData([]byte("same"))))
		stuck.Release()
		zktest.Eventually(t, generous, "the clean-up is done", func() bool { return c.PendingDeletes() == 0 })
		mustHold(t, other, lease)
		mustRelease(t, lease)
	})
}

// TestUnfairMutexCleanUp_before_the_next_attempt withdraws with the create on its way, and
// has the same client lock again with the same data. The clean-up must not take the second's znode
// for the first's, nor the second the first's for its own.
func TestUnfairMutexCleanUp_before_the_next_attempt(t *testing.T) {
	t.Parallel()
	for _, action := range []fault.Action{fault.HoldRequest, fault.HoldReply, fault.DropReply, fault.CutBefore} {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				path := "/unfair/next/" + action.String()
				c, route := onRoute(t, env)
				createDirs(t, c, "/unfair/next")
				e := newUnfairMutex(t, c, path, recipes.WithoutMetadata(), recipes.WithData([]byte("same")))
				stuck := route.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: action})
				ctx, cancel := context.WithCancel(t.Context())
				first := lockLater(ctx, e)
				must.Receive(t, stuck.Hit(), "the create")
				cancel()
				wantErr(t, "first Lock", failed(t, first, "the end of the first"), context.Canceled)
				second := lockLater(t.Context(), e)
				stuck.Release()
				lease := granted(t, second, "the lock")
				zktest.Eventually(t, generous, "the clean-up is done", func() bool { return c.PendingDeletes() == 0 })
				mustHold(t, c, lease)
				mustRelease(t, lease)
			})
		})
	}
}

// TestUnfairMutexCreate_after_another_holder loses the connection before the create. Another client has
// the lock before the create is tried again.
func TestUnfairMutexCreate_after_another_holder(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/doubt"
		c, proxy := onRoute(t, env)
		other := env.Client(t)
		same := []lock.Option{recipes.WithoutMetadata(), recipes.WithData([]byte("same"))}
		cut := proxy.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.CutBefore})
		hang := proxy.Rules().Add(fault.Rule{Op: fault.Sync, Path: "/unfair", Action: fault.HoldRequest})
		tried := make(chan error, 1)
		e := newUnfairMutex(t, c, path, same...)
		go func() {
			_, err := e.TryLock(t.Context())
			tried <- err
		}()
		must.Receive(t, cut.Hit(), "the create")
		must.Receive(t, hang.Hit(), "the search for its znode")
		lease := mustTry(t, newUnfairMutex(t, other, path, same...))
		hang.Release()
		wantErr(t, "TryLock", must.Receive(t, tried, "TryLock"), lock.ErrHeld)
		mustHold(t, other, lease)
		mustRelease(t, lease)
	})
}

// TestUnfairMutexReleaseAfterAnOperatorsDeletion holds the release's deletion up until an operator
// has deleted the holder's znode and another client has locked.
func TestUnfairMutexReleaseAfterAnOperatorsDeletion(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/operator"
		c, route := onRoute(t, env)
		other := env.Client(t) // now, because a request can't be held for long
		lease := mustLock(t, newUnfairMutex(t, c, path))
		stuck := []*fault.Handle{
			route.Rules().Add(fault.Rule{Op: fault.Delete, Path: path, Action: fault.HoldRequest}),
			route.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.HoldRequest}),
		}
		released := make(chan error, 1)
		go func() { released <- lease.Release(t.Context()) }()
		select {
		case <-stuck[0].Hit():
		case <-stuck[1].Hit():
		}
		must.OK(t, other.Delete(t.Context(), path))
		next := mustLock(t, newUnfairMutex(t, other, path))
		for _, rule := range stuck {
			rule.Release()
		}
		wantErr(t, "release", must.Receive(t, released, "the release"), lock.ErrNodeDeleted)
		mustHold(t, other, next)
		mustRelease(t, next)
	})
}

// TestUnfairMutexCleanUpAfterAnOperatorsDeletion loses the reply to the create and holds the
// clean-up's deletion up, until an operator has deleted the znode and another client has locked.
func TestUnfairMutexCleanUpAfterAnOperatorsDeletion(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/operator-clean-up"
		c, route := onRoute(t, env)
		e := newUnfairMutex(t, c, path)
		mustRelease(t, mustLock(t, e))
		lost := []*fault.Handle{
			route.Rules().Add(fault.Rule{Op: fault.Create, Path: path, Action: fault.HoldReply}),
			route.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.HoldReply}),
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := lockLater(ctx, e)
		select {
		case <-lost[0].Hit():
		case <-lost[1].Hit():
		}
		stuck := []*fault.Handle{
			route.Rules().Add(fault.Rule{Op: fault.Delete, Path: path, Action: fault.HoldRequest}),
			route.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.HoldRequest}),
		}
		cancel()
		must.Receive(t, done, "the end of Lock")
		for _, rule := range lost {
			rule.Release()
		}
		select {
		case <-stuck[0].Hit():
		case <-stuck[1].Hit():
		}
		other := env.Client(t)
		must.OK(t, other.Delete(t.Context(), path))
		next := mustLock(t, newUnfairMutex(t, other, path))
		for _, rule := range stuck {
			rule.Release()
		}
		zktest.Eventually(t, generous, "the clean-up is done", func() bool { return c.PendingDeletes() == 0 })
		mustHold(t, other, next)
		mustRelease(t, next)
	})
}
