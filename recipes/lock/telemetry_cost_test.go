package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// serverInProcess returns the connect string of a server of the test's own, and
// what gets a client there.
func serverInProcess(t testing.TB) (string, framework.Option) {
	t.Helper()
	server := zkserver.Run(t)
	return server.Addr(), framework.WithDialer(server.Dial)
}

// TestReentryCostsNothingMore counts the allocations of a re-entry: the lease is
// the only one, whoever listens.
func TestReentryCostsNothingMore(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	addr, dialer := serverInProcess(t)
	clients := map[string]*framework.Client{
		"nobody listens": newClient(t, addr, dialer),
		"all is kept": newService("a", func(opts ...framework.Option) *framework.Client {
			return newClient(t, addr, append(opts, dialer)...)
		}).client,
	}
	for name, c := range clients {
		m := newMutex(t, c, "/cost")
		for kind, ctx := range map[string]context.Context{
			"goroutine": t.Context(),
			"owner":     lock.ContextWithOwner(t.Context(), lock.NewOwner("cost")),
		} {
			lease := must.Get(m.Lock(ctx))(t)
			allocs := testing.AllocsPerRun(1000, func() {
				again := must.Get(m.Lock(ctx))(t)
				must.OK(t, again.Release(ctx))
			})
			if allocs > 1 {
				t.Errorf("%s, by %s: %v allocations per re-entry, want the lease's alone", name, kind, allocs)
			}
			mustRelease(t, lease)
		}
	}
}

// BenchmarkTelemetry measures Lock and Release of a free mutex on a server in the process, without
// telemetry and with all of it recorded.
func BenchmarkTelemetry(b *testing.B) {
	addr, dialer := serverInProcess(b)
	run := func(name string, c *framework.Client) {
		m := newMutex(b, c, "/bench/telemetry", recipes.WithName("bench"))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
				lease := must.Get(m.Lock(ctx))(b)
				must.OK(b, lease.Release(ctx))
				cancel()
			}
		})
	}
	run("nobody", newClient(b, addr, dialer))
	run("all", newService("a", func(opts ...framework.Option) *framework.Client {
		return newClient(b, addr, append(opts, dialer)...)
	}).client)
}
