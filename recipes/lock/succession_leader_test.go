package lock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// TestLossBeforeSuccession_on_an_isolated_leader is TestLossBeforeSuccessionOnIsolatedLeader
// in virtual time, at moments that lie a quarter of a tick apart.
func TestLossBeforeSuccession_on_an_isolated_leader(t *testing.T) {
	t.Parallel()
	const leader = 2
	for phase := range 8 {
		synctest.Test(t, func(t *testing.T) {
			srv := zkserver.Run(t, zkserver.WithFrontends(3), zkserver.WithLeader(leader), zkserver.WithTick(zktest.DefaultTickTime))
			client := func(i int, timeout time.Duration) *framework.Client {
				c := must.Get(framework.NewClient(srv.Frontend(i).Addr(), framework.WithDialer(srv.Dial),
					framework.WithSessionTimeout(timeout), framework.WithLeaseMargin(zktest.DefaultTickTime)))(t)
				must.OK(t, c.AwaitConnected(t.Context()))
				return c
			}
			holder, next := client(leader, sessionAtStake), client(0, 10*time.Second)
			defer next.Close()
			defer holder.Close()
			lost, granted := lossAndSuccession(t, holder, next, "/succession/leader", func() {
				<-time.After(time.Duration(phase) * zktest.DefaultTickTime / 4)
				srv.Frontend(leader).Isolate()
				srv.Elect() // as if the followers had been restarted
			})
			if !lost.Before(granted) {
				t.Errorf("phase %d: lost %v after the next was granted", phase, lost.Sub(granted))
			}
			t.Logf("phase %d: lost %v before the next was granted", phase, granted.Sub(lost))
			srv.Frontend(leader).Heal()
		})
	}
}
