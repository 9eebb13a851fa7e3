package zkserver_test

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

func wantRefused(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v, want %v", err, syscall.ECONNREFUSED)
	}
}

func TestKilledFrontend_is_gone_until_it_is_restarted(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		other, c := connectTo(t, srv, 0), connectTo(t, srv, 1)
		c.node(t, "/e", 1)
		dead := srv.Frontend(1)
		dead.Freeze() // the system closes the connections of a stopped process, too
		dead.Kill()
		c.closed(t)
		_, err := srv.Dial(t.Context(), "tcp", dead.Addr())
		wantRefused(t, err)
		dead.Kill()
		other.node(t, "/meanwhile", 0)
		moved := resumeOn(t, srv, 0, c)
		if moved.session != c.session || !moved.has(t, "/e") {
			t.Errorf("session %#x, want %#x, which another front end has", moved.session, c.session)
		}
		must.OK(t, dead.Restart())
		must.OK(t, dead.Restart())
		if !connectTo(t, srv, 1).has(t, "/meanwhile") {
			t.Error("the restarted front end is not up to date")
		}
	}, zkserver.WithFrontends(2))
}

func TestKilledLeader_is_replaced_at_once(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connectTo(t, srv, 1)
		dead := srv.Frontend(0)
		dead.Kill()
		if got := srv.Leader(); got != srv.Frontend(1) {
			t.Errorf("front end %v leads, want 1", got)
		}
		c.closed(t) // it has been in the election
		resumeOn(t, srv, 1, c).node(t, "/a", 0)
		srv.Frontend(1).Kill()
		if got := srv.Leader(); got != nil {
			t.Errorf("%s leads without a quorum", got.Addr())
		}
		must.OK(t, dead.Restart())
		if got := srv.Leader(); got != dead {
			t.Fatalf("front end %v leads, want 0", got)
		}
		if !connectTo(t, srv, 0).has(t, "/a") {
			t.Error("the new leader lacks what was committed while it was dead")
		}
	}, led()...)
}

func TestKilledLeader_that_was_isolated(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		srv.Frontend(0).Isolate()
		srv.Frontend(0).Kill()
		pass(limit) // for which the others, who heard nothing of its end, wait
		connectTo(t, srv, 1).node(t, "/a", 0)
	}, led()...)
}

func TestKilledFrontend_by_tcp(t *testing.T) {
	t.Parallel()
	srv := zkserver.Run(t)
	front := srv.Frontend(0)
	addr := must.Get(front.Listen("127.0.0.1:0"))(t)
	nc := must.Get(net.Dial("tcp", addr))(t)
	defer nc.Close()
	front.Kill()
	if _, err := nc.Read(make([]byte, 1)); err == nil {
		t.Error("a dead front end has said something")
	}
	_, err := net.Dial("tcp", addr)
	wantRefused(t, err)
	if _, err := front.Listen("127.0.0.1:0"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("listen: %v, want %v", err, net.ErrClosed)
	}
	taken := must.Get(net.Listen("tcp", addr))(t)
	if err := front.Restart(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("restart: %v, want %v", err, syscall.EADDRINUSE)
	}
	must.OK(t, taken.Close())
	must.OK(t, front.Restart())
	again := must.Get(net.Dial("tcp", addr))(t)
	defer again.Close()
	must.Get(handshake(again, T, 0, 0, nil))(t)
	front.Kill()
	srv.Close()
	if err := front.Restart(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("restart: %v, want %v", err, net.ErrClosed)
	}
}

// The timer after which a front end without a leader serves reads may have fired when Kill stops it. A front
// end that is restarted without a quorum would then serve reads at once.
func TestKilledFrontend_serves_no_reads(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		for _, f := range srv.Frontends() {
			f.Kill()
		}
		f := srv.Frontend(1)
		zkserver.LonePassed(f)
		must.OK(t, f.Restart())
		if zkserver.ServesReads(f) {
			t.Error("it serves reads before it has looked for a leader")
		}
		<-time.After(time.Minute)
		if !zkserver.ServesReads(f) {
			t.Error("it serves no reads after a minute without a leader")
		}
	}, zkserver.WithFrontends(3), zkserver.WithLeader(0), zkserver.WithReadOnlyMode(true))
}
