package zkserver_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestLaggingFrontendAnswersFromThePast(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		now, behind := connectTo(t, srv, 0), connectTo(t, srv, 1)
		now.node(t, "/a", 0)
		behind.do(t, getChildren, "/", true)
		srv.Frontend(1).Hold()
		now.node(t, "/b", 0)
		if behind.has(t, "/b") || !behind.has(t, "/a") {
			t.Error("the front end shows another state than when it was held")
		}
		if srv.Frontend(0).Zxid() == srv.Frontend(1).Zxid() {
			t.Error("both front ends are at the same zxid")
		}
		behind.send(create, "/c", []byte(nil), open(), 0)
		synctest.Wait()
		if !now.has(t, "/c") {
			t.Error("the write did not reach the leader")
		}
		behind.silent(t, T/2)
		srv.Frontend(1).CatchUp()
		behind.event(t, 4, "/")
		if got, err := behind.receive(); err != nil || got.err != 0 || got.xid != behind.xid {
			t.Errorf("got %+v, %v, want the answer to the write", got, err)
		}
		if !behind.has(t, "/b") || srv.Frontend(0).Zxid() != srv.Frontend(1).Zxid() {
			t.Error("the front end has not caught up")
		}
	}, zkserver.WithFrontends(2))
}

func TestFrontendLagsByAFixedTime(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		now, behind := connectTo(t, srv, 0), connectTo(t, srv, 1)
		srv.Frontend(1).LagBy(time.Second)
		now.node(t, "/a", 0)
		pass(time.Second - time.Nanosecond)
		if behind.has(t, "/a") {
			t.Error("the node is visible before its time")
		}
		began := time.Now()
		behind.do(t, syncOp, "/")
		if got := time.Since(began); got != time.Second {
			t.Errorf("sync took %v, want the lag of 1s", got)
		}
		if !behind.has(t, "/a") {
			t.Error("the node is not visible after a sync")
		}
		srv.Frontend(1).CatchUp()
		now.node(t, "/b", 0)
		if !behind.has(t, "/b") {
			t.Error("the front end lags after CatchUp")
		}
	}, zkserver.WithFrontends(2))
}

func TestIsolatedFrontend_answers_reads(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		other, cut := connectTo(t, srv, 0), connectTo(t, srv, 1)
		cut.node(t, "/lock", 1)
		other.do(t, exists, "/lock", true)
		pass(2500 * time.Millisecond) // the half ticks end at whole seconds
		cut.do(t, ping)
		srv.Frontend(1).Isolate() // before the ping has been passed on
		isolated := time.Now()
		for range 3 {
			pass(T / 4)
			other.do(t, ping)
			cut.do(t, ping)
			if !cut.has(t, "/lock") {
				t.Error("the isolated front end hears of the leader's decisions")
			}
		}
		other.event(t, 2, "/lock")
		if got, most := time.Since(isolated), T-1500*time.Millisecond; got > most {
			t.Errorf("the session was held for %v after the cut, want %v at most", got, most)
		}
		if !cut.has(t, "/lock") {
			t.Error("the isolated front end has heard of the expiry")
		}
		cut.send(setData, "/lock", []byte("mine"), -1)
		cut.silent(t, time.Hour)
		srv.Frontend(1).Heal()
		cut.closed(t)
	}, zkserver.WithFrontends(3))
}

func TestHealedFrontendCarriesOutWhatWaited(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		other, cut, gone := connectTo(t, srv, 0), connectTo(t, srv, 1), connectTo(t, srv, 1)
		srv.Frontend(1).Isolate()
		cut.send(create, "/late", []byte(nil), open(), 0)
		gone.send(create, "/ghost", []byte(nil), open(), 1)
		synctest.Wait()
		gone.nc.Close()
		fresh := dial(t, srv, srv.Frontend(1).Addr())
		opened := make(chan error, 1)
		go func() {
			_, err := handshake(fresh, T, 0, 0, nil)
			opened <- err
		}()
		pass(T / 2)
		synctest.Wait()
		select {
		case err := <-opened:
			t.Fatalf("a session was opened without the leader: %v", err)
		default:
		}
		if other.has(t, "/late") || other.has(t, "/ghost") {
			t.Error("a write has passed the cut")
		}
		srv.Frontend(1).Heal()
		cut.succeeds(t)
		must.OK(t, <-opened)
		synctest.Wait()
		if !other.has(t, "/late") || !other.has(t, "/ghost") {
			t.Error("a write is lost that was sent to an isolated front end")
		}
	}, zkserver.WithFrontends(2))
}

func TestFrozenFrontendTakesEverythingAndSaysNothing(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		other, c := connectTo(t, srv, 0), connectTo(t, srv, 1)
		c.node(t, "/e", 1)
		srv.Frontend(1).Freeze()
		c.send(getData, "/e", false)
		fresh := dial(t, srv, srv.Frontend(1).Addr())
		go handshake(fresh, T, 0, 0, nil)
		c.silent(t, T-time.Second)
		other.do(t, ping)
		pass(2 * time.Second)
		if other.has(t, "/e") {
			t.Error("the others keep a session alive whose front end is frozen")
		}
		srv.Frontend(1).Thaw()
		c.closed(t)
	}, zkserver.WithFrontends(2))
}

func TestRefusingFrontendKeepsItsConnections(t *testing.T) {
	t.Parallel()
	srv := zkserver.Run(t)
	addr := must.Get(srv.Listen("127.0.0.1:0"))(t)
	c := connect(t, srv)
	srv.Refuse()
	if _, err := srv.Dial(t.Context(), "tcp", ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want %v", err, syscall.ECONNREFUSED)
	}
	nc := must.Get(net.Dial("tcp", addr))(t)
	defer nc.Close()
	if _, err := nc.Read(make([]byte, 1)); err == nil {
		t.Error("a refusing front end has said something over TCP")
	}
	c.do(t, ping)
	srv.Accept()
	connect(t, srv)
}

func TestDialKnowsItsFrontends(t *testing.T) {
	t.Parallel()
	srv := zkserver.Run(t, zkserver.WithFrontends(2))
	_, err := srv.Dial(t.Context(), "tcp", "192.0.2.3:2181")
	if want := "dial pipe 192.0.2.3:2181: connection refused"; !errors.Is(err, syscall.ECONNREFUSED) || err.Error() != want {
		t.Errorf("an address that nobody has: %v, want %s", err, want)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := srv.Dial(ended, "tcp", srv.Frontend(0).Addr()); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v, want %v", err, context.Canceled)
	}
	if got, want := srv.Addr(), "192.0.2.1:2181,192.0.2.2:2181"; got != want {
		t.Errorf("Addr() = %s, want %s", got, want)
	}
}

func TestClosedServerRefusesEverything(t *testing.T) {
	t.Parallel()
	srv := zkserver.Run(t)
	c := connect(t, srv)
	srv.Close()
	c.closed(t)
	if _, err := srv.Dial(t.Context(), "tcp", ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v, want %v", err, syscall.ECONNREFUSED)
	}
	if _, err := srv.Listen("127.0.0.1:0"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("listen: %v, want %v", err, net.ErrClosed)
	}
}
