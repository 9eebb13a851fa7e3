package framework_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestBackgroundDeletionsAreSentSeveralAtOnce(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const orphans, roundTrip, atMost = 1000, 20 * time.Millisecond, time.Second
		proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) { return srv.Dial(ctx, "tcp", srv.ConnectString()) })
		c := connect(t, srv.ConnectString(), framework.WithDialer(proxy.Dial))
		var paths []string
		for range orphans {
			paths = append(paths, mustCreate(t, c, "/orphans/node-", "", framework.Ephemeral(), framework.Sequential(), framework.WithParents()))
		}
		proxy.SetLatency(roundTrip)
		start := time.Now()
		for _, path := range paths {
			c.Discard(path)
		}
		zktest.Eventually(t, time.Minute, "the deletions are done", func() bool { return c.PendingDeletes() == 0 })
		took := time.Since(start)
		t.Logf("%d deletions at %v each took %v", orphans, roundTrip, took)
		if took > atMost {
			t.Errorf("%d deletions at %v each took %v, want at most %v", orphans, roundTrip, took, atMost)
		}
	})
}
