package framework_test

import (
	"context"
	"errors"
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
		proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) { return srv.Dial(ctx, "tcp", srv.Addr()) })
		c := connect(t, srv.Addr(), framework.WithDialer(proxy.Dial))
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

// TestDeleteWhoseEndIsAwaitedIsNeverDropped has more deletions pending than a client keeps.
func TestDeleteWhoseEndIsAwaitedIsNeverDropped(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		mustCreate(t, c, "/awaited", "")
		srv.Refuse()
		srv.Cut()
		bound := c.InSession(c.Session().ID)
		for i := range framework.MaxPendingDeletes {
			bound.Discard("/none", framework.CreatedBy(int64(i+1)))
		}
		bound.Discard("/none", framework.CreatedBy(framework.MaxPendingDeletes+1))
		if n := c.PendingDeletes(); n != framework.MaxPendingDeletes {
			t.Errorf("%d deletions pending, want %d", n, framework.MaxPendingDeletes)
		}
		over := make(chan struct{})
		bound.Discard("/awaited", framework.WhenOver(func() { close(over) }))
		select {
		case <-over:
			t.Error("the deletion was over before the znode was gone")
		default:
		}
		if err := c.Close(); err != nil && !errors.Is(err, framework.ErrClosed) {
			t.Error(err)
		}
		await(t, over, "the end of the deletion")
	})
}
