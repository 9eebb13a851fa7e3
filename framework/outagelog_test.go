package framework_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestOutage_is_retried_with_pauses has a call retry through an outage that ends
// the session. The policy pauses for a millisecond only.
func TestOutage_is_retried_with_pauses(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const outage = 10 * time.Minute
		var dials atomic.Int64
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return srv.Dial(ctx, network, addr)
		}
		var rec record
		c := connect(t, srv.Addr(), framework.WithDialer(dial), framework.WithLogger(rec.logger()),
			framework.WithRetry(retry.Forever(time.Millisecond)))
		srv.Refuse()
		srv.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), outage)
		defer cancel()
		_, _, err := c.Children(ctx, "/")
		wantErr(t, "children", err, context.DeadlineExceeded)
		if n, most := dials.Load(), int64(2*outage/time.Second); n < 10 || n > most {
			t.Errorf("%d attempts to connect within %v, want 10 to %d", n, outage, most)
		}
		log := rec.String() // DEBUG has a line for each attempt
		if n := strings.Count(log, "\n") - strings.Count(log, `"L":"DEBUG"`); n < 2 || n > 50 {
			t.Errorf("%d log lines above DEBUG within %v, want 2 to 50", n, outage)
		}
		srv.Accept()
		if _, _, err := c.Children(t.Context(), "/"); err != nil {
			t.Errorf("after the outage: %v", err)
		}
	})
}
