package zkserver_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/check"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestLaggingFrontendAnswersFromThePast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkserver.WithFrontends(2))
		now, behind := connectTo(t, srv, 0), connectTo(t, srv, 1)
		now.node(t, "/a", 0)
		behind.do(t, getChildren, "/", true)
		srv.Frontend(1).Hold()
		now.node(t, "/b", 0)
		check.That(t, !behind.has(t, "/b") && behind.has(t, "/a"),
			"the front end shows another state than when it was held")
		check.That(t, srv.Frontend(0).Zxid() != srv.Frontend(1).Zxid(), "both front ends are at the same zxid")
		behind.send(create, "/c", []byte(nil), open(), 0)
		synctest.Wait()
		check.That(t, now.has(t, "/c"), "the write did not reach the leader")
		behind.silent(t, T/2)
		srv.Frontend(1).CatchUp()
		behind.event(t, 4, "/")
		if got, err := behind.receive(); err != nil || got.err != 0 || got.xid != behind.xid {
			t.Errorf("got %+v, %v, want the answer to the write", got, err)
		}
		check.That(t, behind.has(t, "/b") && srv.Frontend(0).Zxid() == srv.Frontend(1).Zxid(),
			"the front end has not caught up")
	})
}

func TestFrontendLagsByAFixedTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkserver.WithFrontends(2))
		now, behind := connectTo(t, srv, 0), connectTo(t, srv, 1)
		srv.Frontend(1).LagBy(time.Second)
		now.node(t, "/a", 0)
		pass(time.Second - time.Nanosecond)
		check.That(t, !behind.has(t, "/a"), "the node is visible before its time")
		began := time.Now()
		behind.do(t, syncOp, "/")
		check.Equal(t, time.Since(began), time.Second, "sync took, want the lag of 1s")
		check.That(t, behind.has(t, "/a"), "the node is not visible after a sync")
		srv.Frontend(1).CatchUp()
		now.node(t, "/b", 0)
		check.That(t, behind.has(t, "/b"), "the front end lags after CatchUp")
	})
}

func TestIsolatedFrontend_answers_reads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkserver.WithFrontends(3))
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
			check.That(t, cut.has(t, "/lock"), "the isolated front end hears of the leader's decisions")
		}
		other.event(t, 2, "/lock")
		if got, most := time.Since(isolated), T-1500*time.Millisecond; got > most {
			t.Errorf("the session was held for %v after the cut, want %v at most", got, most)
		}
		check.That(t, cut.has(t, "/lock"), "the isolated front end has heard of the expiry")
		cut.send(setData, "/lock", []byte("mine"), -1)
		cut.silent(t, time.Hour)
		srv.Frontend(1).Heal()
		cut.closed(t)
	})
}

func TestHealedFrontendCarriesOutWhatWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkserver.WithFrontends(2))
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
		check.That(t, !other.has(t, "/late") && !other.has(t, "/ghost"), "a write has passed the cut")
		srv.Frontend(1).Heal()
		check.Equal(t, must.Get(cut.receive())(t).err, 0, "the write that waited")
		check.OK(t, <-opened)
		synctest.Wait()
		check.That(t, other.has(t, "/late") && other.has(t, "/ghost"),
			"a write is lost that was sent to an isolated front end")
	})
}

func TestFrozenFrontendTakesEverythingAndSaysNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkserver.WithFrontends(2))
		other, c := connectTo(t, srv, 0), connectTo(t, srv, 1)
		c.node(t, "/e", 1)
		srv.Frontend(1).Freeze()
		c.send(getData, "/e", false)
		fresh := dial(t, srv, srv.Frontend(1).Addr())
		go handshake(fresh, T, 0, 0, nil)
		c.silent(t, T-time.Second)
		other.do(t, ping)
		pass(2 * time.Second)
		check.That(t, !other.has(t, "/e"), "the others keep a session alive whose front end is frozen")
		srv.Frontend(1).Thaw()
		c.closed(t)
	})
}

func TestThawedFrontendAnswersWhatItWasSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		c := connect(t, srv)
		srv.Freeze()
		for range 3 {
			c.send(ping)
		}
		c.silent(t, T/2)
		srv.Thaw()
		for i := range 3 {
			check.Equal(t, must.Get(c.receive())(t).xid, -2, "answer %d", i)
		}
	})
}

func TestRefusingFrontendKeepsItsConnections(t *testing.T) {
	t.Parallel()
	srv := zkserver.Run(t)
	addr := must.Get(srv.Listen("127.0.0.1:0"))(t)
	c := connect(t, srv)
	srv.Refuse()
	check.Is(t, must.Err(srv.Dial(t.Context(), "tcp", "")), syscall.ECONNREFUSED, "Dial")
	nc := must.Get(net.Dial("tcp", addr))(t)
	defer nc.Close()
	_, err := nc.Read(make([]byte, 1))
	check.That(t, err != nil, "a refusing front end has said something over TCP")
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
	check.Is(t, must.Err(srv.Dial(ended, "tcp", srv.Frontend(0).Addr())), context.Canceled,
		"with a context that has ended")
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
	check.Is(t, must.Err(srv.Dial(t.Context(), "tcp", "")), syscall.ECONNREFUSED, "dial")
	check.Is(t, must.Err(srv.Listen("127.0.0.1:0")), net.ErrClosed, "listen")
}
