package wire_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// started returns a wire that go-zookeeper dials for. dials counts its attempts.
func started(t *testing.T, srv *zkserver.Server) (w *wire.Wire, dials *atomic.Int64) {
	t.Helper()
	dials = new(atomic.Int64)
	w = newWire()
	must.OK(t, w.Start(func() (net.Conn, error) {
		if w.Status().Ended != nil {
			return w.Over(), nil
		}
		dials.Add(1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn, err := srv.Dial(ctx, "tcp", srv.Addr())
		if err != nil {
			<-time.After(100 * time.Millisecond)
			return nil, err
		}
		return w.Connect(ctx, conn, wire.Identification{})
	}, zap.NewNop()))
	return w, dials
}

// go-zookeeper pings for an idle hour, dials again when the connection breaks, and has nothing to wait for
// at the end.
func TestGoZooKeeperBehindTheFacade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		w, dials := started(t, srv)
		pings := srv.Rules().Add(fault.Rule{Op: fault.Ping, Action: fault.Pass, Times: fault.Forever})
		<-time.After(time.Hour)
		if n := pings.Hits(); n < int(3*time.Hour/timeout)*9/10 {
			t.Errorf("%d pings in an hour", n)
		}
		first := w.Status().ID
		w.CloseConn(errTest)
		<-time.After(time.Second)
		if s := w.Status(); s.ID != first || !s.Open || dials.Load() != 2 {
			t.Errorf("%+v after %d dials, want session %d to have resumed", s, dials.Load(), first)
		}
		start := time.Now()
		w.End(errTest)
		wantErr(t, "the close", w.CloseSession(t.Context()), nil)
		w.Retire(errTest)
		if took := time.Since(start); took > 10*time.Millisecond || len(srv.Sessions()) != 0 {
			t.Errorf("closed after %v, %d sessions are left", took, len(srv.Sessions()))
		}
	})
}

// Retire waits for nothing, whatever go-zookeeper does at the moment.
func TestRetire_takes_no_time(t *testing.T) {
	for name, trouble := range map[string]func(srv *zkserver.Server, w *wire.Wire){
		"nothing was dialled":  func(*zkserver.Server, *wire.Wire) {},
		"it is connected":      func(*zkserver.Server, *wire.Wire) { synctest.Wait() },
		"the connection broke": func(srv *zkserver.Server, _ *wire.Wire) { synctest.Wait(); srv.Refuse(); srv.Cut(); synctest.Wait() },
		"it breaks now":        func(srv *zkserver.Server, _ *wire.Wire) { synctest.Wait(); srv.Cut() },
		"the server is frozen": func(srv *zkserver.Server, _ *wire.Wire) { synctest.Wait(); srv.Freeze() },
		"the session is over": func(_ *zkserver.Server, w *wire.Wire) {
			synctest.Wait()
			w.CloseConn(errTest)
			w.End(errTest)
			synctest.Wait()
		},
	} {
		runSynctest(t, name, func(t *testing.T) {
			srv := zkserver.Run(t)
			w, _ := started(t, srv)
			trouble(srv, w)
			start := time.Now()
			w.Retire(errors.New("retired"))
			if took := time.Since(start); took > 150*time.Millisecond { // the pause of its dial function
				t.Errorf("it took %v", took)
			}
			srv.Thaw()
		})
	}
}
