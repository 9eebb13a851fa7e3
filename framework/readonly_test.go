package framework_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// readOnlyTimeout is long enough for a session to survive an outage of some seconds.
const readOnlyTimeout = 30 * time.Second

// withoutQuorum runs fn in virtual time with three servers that serve reads without a quorum.
func withoutQuorum(t *testing.T, localSessions bool, fn func(t *testing.T, srv *zkserver.Server)) {
	t.Helper()
	virtually(t, fn, zkserver.WithFrontends(3), zkserver.WithLeader(0), zkserver.WithSyncLimit(2),
		zkserver.WithReadOnlyMode(localSessions))
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
		mustCreate(t, c, "/node", "data")
		stopQuorum(srv)
		awaitState(t, c, framework.ReadOnly)
		if got, _, err := c.Get(t.Context(), "/node"); err != nil || string(got) != "data" {
			t.Errorf("read %q, %v", got, err)
		}
		for name, call := range servedReads(c) {
			if err := call(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, call := range refusals(c) {
			began := time.Now()
			wantErr(t, name, call(t.Context()), framework.ErrReadOnly)
			if took := time.Since(began); took != 0 {
				t.Errorf("%s: refused after %v, want at once", name, took)
			}
		}
		if got := seen.last(framework.ReadOnly).Session; got != id || c.Session().ID != id {
			t.Errorf("the change names session %#x, the client %#x; want the one of before, %#x", got, c.Session().ID, id)
		}
		resumeQuorum(srv)
		awaitState(t, c, connected)
		seen.await(t, connecting, connected, suspended, framework.ReadOnly, suspended, connected)
		if c.Session().ID != id {
			t.Errorf("session %#x, want that of before, %#x", c.Session().ID, id)
		}
		if err := c.Delete(t.Context(), "/node"); err != nil {
			t.Error(err)
		}
		sleep(time.Minute)
		if n := len(srv.Sessions()); n != 1 {
			t.Errorf("%d sessions, want one", n)
		}
	})
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
		if took := time.Since(began); took > timeout {
			t.Errorf("lost after %v, want %v at most", took, timeout)
		}
		sleep(time.Millisecond)
		seen.await(t, connecting, connected, suspended, framework.ReadOnly, lost, framework.ReadOnly)
		if got := seen.last(lost).Session; got != id {
			t.Errorf("session %#x was lost, want %#x", got, id)
		}
		if got := seen.last(framework.ReadOnly).Session; got != 0 {
			t.Errorf("session %#x while there is none", got)
		}
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
		if _, _, err := c.Children(t.Context(), "/"); err != nil {
			t.Error(err)
		}
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
			if c.State() != connecting {
				t.Errorf("state %v", c.State())
			}
			_, _, err := c.Children(within(t, time.Second), "/")
			wantErr(t, "read", err, framework.ErrNotConnected)
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
		if entered := countOf(seen.states(), framework.ReadOnly); entered < 5 || entered > minutes+8 {
			t.Errorf("ReadOnly %d times in %d minutes", entered, minutes)
		}
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
