package zktest_test

import (
	"testing"

	"github.com/docent-go/docent/internal/check"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	count := func() int64 {
		n := must.Get(server.Requests(t.Context()))(t)
		return n
	}
	check.Equal(t, count(), 0, "Requests() before any client")
	conn := connect(t, server)
	check.Equal(t, count(), 1, "Requests() after a handshake")
	const reads = 20
	for range reads {
		must.Get2(conn.Exists("/"))(t)
	}
	check.Equal(t, count(), 1+reads, "Requests() after %d reads", reads)
	must.OK(t, server.Restart(t.Context()))
}

func TestWatchesAreCounted(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	conn := connect(t, server)
	for i := range 3 {
		must.OK(t, must.Err(conn.ExistsW("/watched-"+itoa(i))))
		check.Equal(t, must.Get(server.Watches(t.Context()))(t), i+1, "Watches()")
	}
}
