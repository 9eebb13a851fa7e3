package framework_test

import (
	"context"
	"slices"
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

func TestReadOnlyServersWithoutLocalSessions(t *testing.T) {
	t.Parallel()
	withoutQuorum(t, false, func(t *testing.T, srv *zkserver.Server) {
		core, logs := observer.New(zap.WarnLevel)
		stopQuorum(srv)
		c := readOnlyClient(t, srv, framework.WithLogger(zap.New(core)))
		sleep(time.Minute)
		if c.State() != connecting {
			t.Errorf("state %v", c.State())
		}
		told := logs.FilterMessage("cannot connect to a read-only server").All()
		if len(told) != 1 {
			t.Fatalf("%d warnings, want one", len(told))
		}
		if why := told[0].ContextMap()["error"]; !strings.Contains(why.(string), "localSessionsEnabled") {
			t.Errorf("the warning says %q", why)
		}
	})
}

func TestReadOnlyWatchFiresAtItsEnd(t *testing.T) {
	t.Parallel()
	withoutQuorum(t, true, func(t *testing.T, srv *zkserver.Server) {
		stopQuorum(srv)
		c := readOnlyClient(t, srv)
		awaitState(t, c, framework.ReadOnly)
		w := mustWatch(t, c, "/", framework.WatchChildren)
		sleep(time.Minute)
		if w.Event() != 0 || !w.Valid() {
			t.Errorf("event %v, valid %v", w.Event(), w.Valid())
		}
		resumeQuorum(srv)
		await(t, w.Fired(), "the watch")
		if w.Event() != framework.EventReconnected {
			t.Errorf("event %v", w.Event())
		}
	})
}

// An operation that is bound to a session waits for it.
func TestReadOnlyIsNotTheSession(t *testing.T) {
	t.Parallel()
	withoutQuorum(t, true, func(t *testing.T, srv *zkserver.Server) {
		c := readOnlyClient(t, srv)
		must.OK(t, c.AwaitConnected(t.Context()))
		bound := c.InSession(c.Session().ID)
		stopQuorum(srv)
		awaitState(t, c, framework.ReadOnly)
		_, _, err := bound.Children(within(t, time.Second), "/")
		wantErr(t, "bound read", err, framework.ErrNotConnected, context.DeadlineExceeded)
		resumeQuorum(srv)
		if _, err := bound.Create(t.Context(), "/bound", nil); err != nil {
			t.Error(err)
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

// A guaranteed deletion that meets read-only servers is done once there is a quorum.
func TestReadOnlyKeepsGuaranteedDeletes(t *testing.T) {
	t.Parallel()
	withoutQuorum(t, true, func(t *testing.T, srv *zkserver.Server) {
		c := readOnlyClient(t, srv)
		mustCreate(t, c, "/doomed", "")
		stopQuorum(srv)
		awaitState(t, c, framework.ReadOnly)
		wantErr(t, "delete", c.Delete(t.Context(), "/doomed", framework.Guaranteed()), framework.ErrReadOnly)
		if n := c.PendingDeletes(); n != 1 {
			t.Errorf("%d pending", n)
		}
		sleep(10 * time.Second)
		resumeQuorum(srv)
		zktest.Eventually(t, time.Minute, "the deletion", func() bool { return c.PendingDeletes() == 0 })
		if slices.Contains(srv.Paths(), "/doomed") {
			t.Error("the znode exists")
		}
	})
}

// A write whose reply is lost with the quorum says so.
func TestReadOnlyAfterAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	withoutQuorum(t, true, func(t *testing.T, srv *zkserver.Server) {
		c := readOnlyClient(t, srv, framework.WithConnectTimeout(time.Minute))
		mustCreate(t, c, "/node", "")
		srv.Rules().Add(fault.Rule{Op: fault.SetData, Action: fault.HoldReply})
		done := make(chan error, 1)
		go func() { // ends with the call
			_, err := c.Set(t.Context(), "/node", []byte("x"), framework.AnyVersion)
			done <- err
		}()
		sleep(time.Microsecond)
		stopQuorum(srv)
		wantErr(t, "set", <-done, framework.ErrReadOnly, framework.ErrUnknownOutcome)
	})
}
