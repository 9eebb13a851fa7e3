package framework_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// A curious error asks the client for its state when it is read.
type curiousError struct{ ask func() }

// Error is part of error.
func (e curiousError) Error() string {
	e.ask()
	return "refused"
}

// A dialer's error may call the client: it is read without the client's mutex.
func TestDialersErrorCallsTheClient(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, _ *zkserver.Server) {
		asked := 0
		ready := make(chan *framework.Client, 1)
		c := newClient(t, "192.0.2.1", framework.WithDialer(func(context.Context, string, string) (net.Conn, error) {
			c := <-ready
			ready <- c
			return nil, curiousError{func() { _ = c.State(); asked++ }}
		}))
		ready <- c
		wantErr(t, "AwaitConnected", c.AwaitConnected(within(t, time.Second)), framework.ErrNotConnected)
		must.OK(t, c.Close())
		if asked == 0 {
			t.Error("nobody has read the error")
		}
	})
}

// A dialer that returns neither a connection nor an error has failed, whether that is in time or not.
func TestADialerThatReturnsNothingHasFailed(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{"in time": 0, "late": 2 * time.Second} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var attempts atomic.Int32
			c := newClient(t, srv.Addr(), framework.WithConnectTimeout(time.Second), framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				if attempts.Add(1) > 1 {
					return srv.Dial(ctx, network, addr)
				}
				<-time.After(takes)
				return nil, nil
			}))
			must.OK(t, c.AwaitConnected(within(t, time.Minute)))
			sleep(takes)
		})
	}
}
