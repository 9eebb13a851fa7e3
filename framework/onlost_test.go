package framework_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// A holder with OnLost is notified before the ensemble learns of the session's end: the loss is
// reported before the next grant.
func TestALossIsPassedOnBeforeCloseTellsTheEnsemble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told, early, ended atomic.Bool
		srv := zkserver.Run(t, zkserver.WithObserver(func(x zkserver.Transaction) {
			if x.Ended != 0 {
				ended.Store(true)
				early.Store(!told.Load())
			}
		}))
		c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial))
		h, released := mustHold(t, c), mustHold(t, c)
		h.OnLost(func(cause error) {
			if !errors.Is(cause, framework.ErrClosed) || !errors.Is(h.Err(), framework.ErrClosed) {
				t.Errorf("told of %v, and Err is %v; want ErrClosed", cause, h.Err())
			}
			told.Store(true)
		})
		released.OnLost(func(error) { t.Error("a hold that was released is told of a loss") })
		released.Release()
		must.OK(t, c.Close())
		if !ended.Load() || early.Load() {
			t.Errorf("the session has ended at the server: %v, before the hold's owner was told: %v", ended.Load(), early.Load())
		}
		h.OnLost(func(error) { t.Error("a hold that is lost already is told of it") })
	})
}

// TestCloseWaitsForALossThatIsBeingToldOf has the session's own goroutine stuck, so that Err finds the
// deadline passed and tells of the loss on the caller's goroutine.
func TestCloseWaitsForALossThatIsBeingToldOf(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		unstick, goOn := make(chan struct{}), make(chan struct{})
		var stuck atomic.Bool
		c := connect(t, srv.Addr(), framework.WithSessionTimeout(span),
			framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := srv.Dial(ctx, network, addr)
				return &stickyConn{Conn: conn, stuck: &stuck, unstick: unstick}, err
			}))
		h := mustHold(t, c)
		var told atomic.Bool
		h.OnLost(func(error) {
			<-goOn
			told.Store(true)
		})
		srv.Freeze()
		sleep(time.Until(h.Deadline()))
		if !stuck.Load() {
			t.Fatal("nobody closes the connection")
		}
		go h.Err() // it notices the loss
		closed := make(chan struct{})
		synctest.Wait()
		go func() {
			_ = c.Close() // when it returns is the test
			close(closed)
		}()
		synctest.Wait()
		close(unstick)
		sleep(10 * time.Second)
		select {
		case <-closed:
			t.Error("Close returned before the loss was told")
		default:
		}
		close(goOn)
		<-closed
		if !told.Load() {
			t.Error("the loss was not told")
		}
	})
}

// A stickyConn hangs in its first Close until it is released.
type stickyConn struct {
	net.Conn
	stuck   *atomic.Bool
	unstick chan struct{}
}

// Close closes the connection.
func (c *stickyConn) Close() error {
	if c.stuck.CompareAndSwap(false, true) {
		<-c.unstick
	}
	return c.Conn.Close()
}
