package framework_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestManyHoldsAreLostInTime cuts a client off. With many secured holds, it begins to notify their
// owners before the deadline, because that takes a time which virtual time does not show.
func TestManyHoldsAreLostInTime(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	for holds, early := range map[int]time.Duration{
		200:    0,
		5_000:  20 * time.Millisecond,
		16_000: timeout / 16,
	} {
		t.Run(fmt.Sprint(holds), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t, zkserver.WithSessionTimeouts(timeout, timeout))
				proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) { return srv.Dial(ctx, "tcp", srv.Addr()) })
				c := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(proxy.Dial), framework.WithSessionTimeout(timeout)))(t)
				defer c.Close()
				must.OK(t, c.AwaitConnected(t.Context()))
				var mu sync.Mutex
				var lost []time.Time
				var hold *framework.SessionHold
				for range holds {
					hold = must.Get(c.HoldSession(t.Context()))(t)
					must.OK(t, hold.Secure(t.Context()))
					hold.OnLost(func(error) {
						mu.Lock()
						defer mu.Unlock()
						lost = append(lost, time.Now())
					})
				}
				proxy.Blackhole(zkproxy.Both)
				<-hold.Lost()
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if len(lost) != holds {
					t.Fatalf("%d holds were notified, want %d", len(lost), holds)
				}
				// The session looks at its deadline once a millisecond at the most.
				if first := hold.Deadline().Sub(lost[0]); first > early || first <= early-time.Millisecond {
					t.Errorf("the first was notified %v before the deadline, want %v", first, early)
				}
			})
		})
	}
}
