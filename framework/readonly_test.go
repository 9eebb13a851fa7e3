package framework_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// readOnlyTimeout is long enough for a session to survive an outage of some seconds.
const readOnlyTimeout = 30 * time.Second

// withoutQuorum runs fn in virtual time with three servers that serve reads without a quorum.
func withoutQuorum(t *testing.T, localSessions bool, fn func(t *testing.T, srv *zkserver.Server), opts ...zkserver.Option) {
	t.Helper()
	virtually(t, fn, append(opts, zkserver.WithFrontends(3), zkserver.WithLeader(0), zkserver.WithSyncLimit(2),
		zkserver.WithReadOnlyMode(localSessions))...)
}

// stop takes the servers away from their clients and from each other.
func stop(servers ...*zkserver.Frontend) {
	for _, f := range servers {
		f.Refuse()
		f.Isolate()
		f.Cut()
	}
}

// resume ends what stop began.
func resume(servers ...*zkserver.Frontend) {
	for _, f := range servers {
		f.Accept()
		f.Heal()
	}
}

// stopQuorum stops all servers but one.
func stopQuorum(srv *zkserver.Server)   { stop(srv.Frontends()[:2]...) }
func resumeQuorum(srv *zkserver.Server) { resume(srv.Frontends()[:2]...) }

// readOnlyClient returns a client that reads from servers without a quorum.
func readOnlyClient(t *testing.T, srv *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	return newClient(t, srv.Addr(), append([]framework.Option{
		framework.WithDialer(srv.Dial),
		framework.WithSessionTimeout(readOnlyTimeout), framework.WithReadOnly(),
	}, opts...)...)
}

// awaitState waits until the client has the state.
func awaitState(t testing.TB, c *framework.Client, want framework.State) {
	t.Helper()
	zktest.Eventually(t, 2*time.Minute, want.String(), func() bool { return c.State() == want })
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	withoutQuorum(t, true, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c := readOnlyClient(t, srv, framework.WithStateListener(seen.add))
		must.OK(t, c.AwaitConnected(t.Context()))
		id := c.Session().ID
		mustCreate(t, c, "/a", "data")
		mustCreate(t, c, "/b", "data")
		stopQuorum(srv)
		awaitState(t, c, framework.ReadOnly)
		wantData(t, c, "/a", "data")
		bound, watch := c.InSession(id), mustWatch(t, c, "/", framework.WatchChildren)
		calls := requestKinds()
		for _, name := range []string{"ACL", "Children", "ChildrenEach", "Exists", "Get", "GetEach", "Watch", "WatchEach", "WhoAmI"} {
			wantErr(t, name, calls[name](t.Context(), c), nil)
		}
		calls["Create protected"] = func(ctx context.Context, c *framework.Client) error {
			return last(c.Create(ctx, "/new", nil, framework.Protected(), framework.Ephemeral()))
		}
		for _, name := range []string{
			"Config", "Create", "Create protected", "CreateAll", "CreateOrSet", "Delete", "DeleteTree", "Ephemerals", "HoldSession",
			"Ready", "Set", "SetACL", "Sync", "Txn",
		} {
			began := time.Now()
			wantErr(t, name, calls[name](t.Context(), c), framework.ErrReadOnly)
			wantEqual(t, "time until the refusal of "+name, time.Since(began), 0)
		}
		if got := seen.last(framework.ReadOnly).Session; got != id || c.Session().ID != id {
			t.Errorf("the change names session %#x, the client %#x; want the one of before, %#x", got, c.Session().ID, id)
		}
		wantErr(t, "a read that is bound to the session", last(bound.Children(within(t, time.Second), "/")), framework.ErrNotConnected, context.DeadlineExceeded)
		wantErr(t, "a guaranteed delete", c.Delete(t.Context(), "/b", framework.Guaranteed()), framework.ErrReadOnly)
		wantEqual(t, "pending deletions", c.PendingDeletes(), 1)
		wantEqual(t, "the watch is valid", watch.Valid(), true)
		resumeQuorum(srv)
		awaitState(t, c, connected)
		wantEvent(t, watch, framework.EventReconnected)
		seen.await(t, connecting, connected, suspended, framework.ReadOnly, suspended, connected)
		wantEqual(t, "session", c.Session().ID, id)
		check(t, bound.Delete(t.Context(), "/a"))
		sleep(time.Minute)
		wantEqual(t, "deletions that are left", c.PendingDeletes(), 0)
		wantExists(t, c, "/b", false)
		wantEqual(t, "sessions", len(srv.Sessions()), 1)
	}, zkserver.WithVersion(zkserver.DefaultVersion)) // which knows whoAmI
}

// A lease is lost at its deadline, whatever a read-only server answers.
func TestReadOnlyProvesNothing(t *testing.T) {
	t.Parallel()
	withoutQuorum(t, true, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c := readOnlyClient(t, srv, framework.WithStateListener(seen.add))
		h := mustHold(t, c)
		timeout, id := c.Session().Timeout, c.Session().ID
		began := time.Now()
		stopQuorum(srv)
		awaitState(t, c, framework.ReadOnly)
		for h.Err() == nil && time.Since(began) < 2*timeout {
			must.Get2(c.Children(t.Context(), "/"))(t)
			sleep(100 * time.Millisecond)
		}
		wantErr(t, "hold", h.Err(), framework.ErrSessionDeadline)
		wantWithin(t, began, timeout)
		sleep(time.Millisecond)
		seen.await(t, connecting, connected, suspended, framework.ReadOnly, lost, framework.ReadOnly)
		wantEqual(t, "session that was lost", seen.last(lost).Session, id)
		wantEqual(t, "session while there is none", seen.last(framework.ReadOnly).Session, 0)
		if got, _, err := c.Children(t.Context(), "/"); err != nil || len(got) == 0 {
			t.Errorf("read %v, %v", got, err)
		}
		resumeQuorum(srv)
		awaitState(t, c, connected)
		if c.Session().ID == id {
			t.Error("the session that was lost is back")
		}
		mustHold(t, c)
	})
}

func TestReadOnlyFromTheStart(t *testing.T) {
	t.Parallel()
	withoutQuorum(t, true, func(t *testing.T, srv *zkserver.Server) {
		stopQuorum(srv)
		var seen trail
		c := readOnlyClient(t, srv, framework.WithStateListener(seen.add))
		awaitState(t, c, framework.ReadOnly)
		check(t, last(c.Children(t.Context(), "/")))
		if got := c.Session(); got != (framework.Session{}) {
			t.Errorf("session %+v, want none", got)
		}
		wantErr(t, "await", c.AwaitConnected(within(t, time.Minute)), context.DeadlineExceeded)
		resumeQuorum(srv)
		must.OK(t, c.AwaitConnected(t.Context()))
		seen.await(t, connecting, framework.ReadOnly, connecting, connected)
	})
}

// Without the option, and while another server has a quorum, a read-only server is one that refuses.
func TestReadOnlyServerIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]framework.Option{
		"without the option": nil, "with the option": {framework.WithReadOnly()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withoutQuorum(t, true, func(t *testing.T, srv *zkserver.Server) {
				alone := srv.Frontend(2)
				alone.Isolate()
				sleep(time.Minute)
				for range 10 {
					var seen trail
					c := connect(t, srv.Addr(), append(opts,
						framework.WithDialer(srv.Dial), framework.WithStateListener(seen.add))...)
					sleep(time.Minute)
					seen.await(t, connecting, connected)
					mustHold(t, c)
				}
			})
		})
	}
	t.Run("no other", func(t *testing.T) {
		t.Parallel()
		withoutQuorum(t, true, func(t *testing.T, srv *zkserver.Server) {
			stopQuorum(srv)
			c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial))
			sleep(time.Minute)
			wantEqual(t, "state", c.State(), connecting)
			wantErr(t, "read", last(c.Children(within(t, time.Second), "/")), framework.ErrNotConnected)
		})
	})
}

// A server that goes on closing read-only connections makes the state change once a minute at most.
func TestReadOnlyDoesNotFlap(t *testing.T) {
	t.Parallel()
	withoutQuorum(t, true, func(t *testing.T, srv *zkserver.Server) {
		stopQuorum(srv)
		var seen trail
		c := readOnlyClient(t, srv, framework.WithStateListener(seen.add))
		awaitState(t, c, framework.ReadOnly)
		const minutes = 20
		for range minutes * 60 {
			srv.Frontend(2).Cut()
			sleep(time.Second)
		}
		wantBetween(t, "changes to ReadOnly", countOf(seen.states(), framework.ReadOnly), 5, minutes+8)
		awaitState(t, c, framework.ReadOnly)
	})
}

func countOf(states []framework.State, want framework.State) (n int) {
	for _, state := range states {
		if state == want {
			n++
		}
	}
	return n
}

func TestReadOnlyServersWithoutLocalSessions(t *testing.T) {
	t.Parallel()
	withoutQuorum(t, false, func(t *testing.T, srv *zkserver.Server) {
		core, logs := observer.New(zap.WarnLevel)
		stopQuorum(srv)
		c := readOnlyClient(t, srv, framework.WithLogger(zap.New(core)))
		sleep(time.Minute)
		wantEqual(t, "state", c.State(), connecting)
		notified := logs.FilterMessage("cannot connect to a read-only server").All()
		if len(notified) != 1 {
			t.Fatalf("%d warnings, want one", len(notified))
		}
		if why := notified[0].ContextMap()["error"]; !strings.Contains(why.(string), "localSessionsEnabled") {
			t.Errorf("the warning says %q", why)
		}
	})
}

// A server that has found a quorum begins a session for whom would have read. It is closed.
func TestReadOnlyLeavesNoSession(t *testing.T) {
	t.Parallel()
	var began, ended atomic.Int64
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := readOnlyClient(t, srv)
		must.OK(t, c.AwaitConnected(t.Context()))
		refused := srv.Rules().Add(fault.Rule{
			Op: fault.Connect, Session: c.Session().ID, Action: fault.CutBefore, Times: fault.Forever,
		})
		srv.Cut()
		for range 100 {
			sleep(100 * time.Millisecond)
			if c.State() != suspended {
				t.Fatalf("state %v", c.State())
			}
		}
		refused.Remove()
		sleep(5 * time.Second)
		if c.State() != connected || began.Load() < 2 || ended.Load() != began.Load()-1 {
			t.Errorf("%v; %d sessions began, clients ended %d of them; want all but one", c.State(), began.Load(), ended.Load())
		}
	}, zkserver.WithFrontends(3), zkserver.WithLeader(0), zkserver.WithObserver(func(x zkserver.Transaction) {
		if x.Began != 0 {
			began.Add(1)
		}
		if x.ByClient {
			ended.Add(1)
		}
	}))
}

// A write whose reply is lost with the quorum says so.
func TestReadOnlyAfterAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	withoutQuorum(t, true, func(t *testing.T, srv *zkserver.Server) {
		c := readOnlyClient(t, srv, framework.WithConnectTimeout(time.Minute))
		mustCreate(t, c, "/node", "")
		srv.Rules().Add(fault.Rule{Op: fault.SetData, Action: fault.HoldReply})
		done := background(func() error { return last(c.Set(t.Context(), "/node", []byte("x"), framework.AnyVersion)) })
		sleep(time.Microsecond)
		stopQuorum(srv)
		wantErr(t, "set", <-done, framework.ErrReadOnly, framework.ErrUnknownOutcome)
	})
}
