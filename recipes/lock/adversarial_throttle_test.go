package lock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/testing/fault"
)

// A server that sheds load refuses the deletion. The deletion is done later.
func TestNoOrphan_when_the_server_throttles_the_delete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/attack/throttled"
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		lease := mustLock(t, newMutex(t, c, path))
		refused := srv.Rules().Add(fault.Rule{Op: fault.Delete, Action: fault.Refuse, Code: fault.Throttled})
		t.Logf("release: %v", lease.Release(t.Context()))
		await(time.Minute)
		if refused.Hits() != 1 {
			t.Error("no deletion was refused")
		}
		if left := znodesBelow(srv, path); len(left) != 0 {
			t.Errorf("the deletion was given up: %q", left)
		}
	})
}
