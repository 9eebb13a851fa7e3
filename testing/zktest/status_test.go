package zktest_test

import (
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	count := func() int64 {
		return must.Get(server.Requests(t.Context()))(t)
	}
	if got := count(); got != 0 {
		t.Errorf("Requests() before any client = %d; want 0", got)
	}
	conn := connect(t, server)
	if got := count(); got != 1 {
		t.Errorf("Requests() after a handshake = %d; want 1", got)
	}
	const reads = 20
	for range reads {
		must.Get2(conn.Exists("/"))(t)
	}
	if got := count(); got != 1+reads {
		t.Errorf("Requests() after %d reads = %d; want %d", reads, got, 1+reads)
	}
	must.OK(t, server.Restart(t.Context()))
}
