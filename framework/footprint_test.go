package framework_test

import (
	"runtime"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zktest"
)

// docs/concurrency.md lists them. Not parallel: it counts goroutines and bytes.
func TestAClientHasAFixedNumberOfGoroutinesAndBuffersOfTheGivenSize(t *testing.T) {
	server := zktest.Shared(t)
	const clients = 20
	const goroutinesEach, bytesEach = 5, 200 << 10
	goroutines, bytes := runtime.NumGoroutine(), heap()
	var all []*framework.Client
	for range clients {
		c := connect(t, server.Addr(), framework.WithMaxPacket(64<<10, 64<<10))
		for range 3 {
			mustHold(t, c)
			mustWatch(t, c, "/", framework.WatchChildren)
			c.OnState(func(framework.StateChange) {})
		}
		all = append(all, c)
	}
	zktest.Eventually(t, patience, "each client has its goroutines and no more", func() bool {
		return runtime.NumGoroutine() <= goroutines+clients*goroutinesEach
	})
	if each := (int64(heap()) - int64(bytes)) / clients; each > bytesEach {
		t.Errorf("a client takes %d bytes, want at most %d", each, bytesEach)
	} else {
		t.Logf("a client takes %d KiB", each>>10)
	}
	runtime.KeepAlive(all)
}
