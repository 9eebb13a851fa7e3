package zkproxy_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

func TestLatency(t *testing.T) {
	t.Parallel()
	proxy, client := proxied(t)
	const rtt = 100 * time.Millisecond
	proxy.SetLatency(rtt)
	start := time.Now()
	client.wantReply(client.ask())
	if took := time.Since(start); took < rtt {
		t.Errorf("a round trip took %v; want %v at least", took, rtt)
	}
	proxy.SetLatency(0)
	zktest.Eventually(t, soon, "a round trip without latency", func() bool { // a busy machine delays some
		start = time.Now()
		client.wantReply(client.ask())
		return time.Since(start) < rtt
	})
}

// The rest of a round trip is the cost of a proxy, compared with a direct connection.
func BenchmarkRoundTrip(b *testing.B) {
	for _, c := range []struct {
		name string
		rtt  time.Duration
	}{
		{"direct", -1}, {"0", 0}, {"200us", 200 * time.Microsecond}, {"1ms", time.Millisecond}, {"5ms", 5 * time.Millisecond},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkRoundTrip(b, c.rtt) })
	}
}

func benchmarkRoundTrip(b *testing.B, rtt time.Duration) {
	b.Helper()
	server := zktest.Shared(b)
	addr := server.Addr()
	if rtt >= 0 {
		proxy := zkproxy.Run(b, addr)
		proxy.SetLatency(rtt)
		addr = proxy.Addr()
	}
	client := connect(b, addr)
	b.ReportAllocs()
	for b.Loop() {
		client.wantReply(client.ask())
	}
}
