package zkproxy_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

func TestLatency(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const rtt = 100 * time.Millisecond
	s.proxy.SetLatency(rtt)
	start := time.Now()
	s.client.exists("/")
	if took := time.Since(start); took < rtt {
		t.Errorf("a round trip took %v; want %v at least", took, rtt)
	}

	const requests = 100
	start = time.Now()
	for range requests {
		s.client.ask("/")
	}
	for range requests {
		s.client.receive()
	}
	if took := time.Since(start); took >= requests*rtt { // so long if one waited for the other
		t.Errorf("%d pipelined requests took %v; want about one round trip", requests, took)
	}

	s.proxy.SetLatency(0)
	fastest := rtt
	for range requests { // a busy machine delays some
		start = time.Now()
		s.client.exists("/")
		fastest = min(fastest, time.Since(start))
	}
	if fastest >= rtt {
		t.Errorf("each of %d round trips took %v at least with no latency", requests, fastest)
	}
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
		client.exists("/")
	}
}
