package framework_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestHeartbeatGoesOutFirst breaks the connection of a client with a hold, while many requests wait
// for the next one. The heartbeat that has to follow the reconnection is sent before all of them.
func TestHeartbeatGoesOutFirst(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, proxy := proxied(t, srv)
		mustTakeHold(t, c)
		srv.Refuse()
		proxy.Cut()
		synctest.Wait()
		proxy.ResetRequests()
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() {
				if _, _, err := c.Exists(t.Context(), "/"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		srv.Accept()
		waiting.Wait()
		for _, request := range proxy.Requests() {
			if request.Op == fault.Connect {
				continue
			}
			if request.Op != fault.Multi {
				t.Errorf("the first request is %v, want the heartbeat, a Multi", request.Op)
			}
			break
		}
		must.OK(t, c.Close())
	})
}
