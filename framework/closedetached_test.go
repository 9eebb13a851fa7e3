package framework_test

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestCloseWithoutAConnection(t *testing.T) {
	t.Parallel()
	for name, reachable := range map[string]bool{
		"ends the session at a server that can be reached": true,
		"leaves it to the ensemble if none can":            false,
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				var down atomic.Bool
				var seen trail
				c := virtual(t, srv, framework.WithStateListener(seen.add), framework.WithSessionTimeout(span),
					framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
						if down.Load() {
							return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
						}
						return srv.Dial(ctx, network, addr)
					}))
				down.Store(true)
				srv.Cut()
				sleep(time.Second)
				seen.await(t, connecting, connected, suspended)
				down.Store(!reachable)
				start := time.Now()
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took > 1100*time.Millisecond {
					t.Errorf("Close took %v", took)
				}
				if left := len(srv.Sessions()); (left == 0) != reachable {
					t.Errorf("%d sessions left", left)
				}
			})
		})
	}
}
