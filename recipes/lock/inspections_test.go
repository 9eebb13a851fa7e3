package lock_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// TestInspectionsOfManyHoldsAreBounded breaks the connection of a client that holds many locks. The
// client reads all of its znodes again, at most 64 at a time. So the heartbeat that follows a
// reconnection does not wait behind thousands of reads.
func TestInspectionsOfManyHoldsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path, holds, bound = "/inspections", 150, 64
		srv := virtualServer(t)
		proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) { return srv.Dial(ctx, "tcp", srv.Addr()) })
		c := virtualClient(t, srv, framework.WithDialer(proxy.Dial))
		held := make([]*lock.Lease, holds)
		for i := range held {
			held[i] = mustLock(t, newMutex(t, c, fmt.Sprintf("%s/%d", path, i)))
		}
		zktest.Eventually(t, generous, "a watch on each znode", func() bool { return srv.Watches() == holds })
		reads := srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: path + "/**", Action: fault.HoldReply, Times: fault.Forever})
		proxy.ResetRequests()
		proxy.Cut()
		zktest.Eventually(t, generous, "the reads after the reconnection", func() bool { return reads.Hits() > 0 })
		synctest.Wait()
		if n := proxy.Count(fault.GetData); n != bound {
			t.Errorf("%d reads at one time, want %d", n, bound)
		}
		reads.Remove()
		reads.Release()
		zktest.Eventually(t, generous, "a watch on each znode again", func() bool { return srv.Watches() == holds })
		deleteNode(t, c, held[holds-1].Node())
		<-held[holds-1].Lost()
		for _, l := range held[:holds-1] {
			if err := l.Err(); err != nil {
				t.Errorf("%s: %v", l.Path(), err)
			}
		}
		if c.State() != framework.Connected {
			t.Errorf("state %v, want Connected", c.State())
		}
	})
}
