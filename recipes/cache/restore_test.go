package cache_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cachebounds"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/testing/zkserver"
)

// After a restore the transaction ids of one history are those of another one. The cache, its events and its values
// show the new one.
func TestARestoreWithTheSameTransactionIDs(t *testing.T) {
	t.Parallel()
	t.Run("whole", func(t *testing.T) { restoreWithTheSameTransactionIDs(t, nil) })
	t.Run("bounded", func(t *testing.T) {
		restoreWithTheSameTransactionIDs(t, []cache.Option{bound(cachebounds.Bounds{ByPath: func(string) bool { return true }})})
	})
}

// restoreWithTheSameTransactionIDs is the test with options of the cache. A bounded cache, which may drop data, has no event.
func restoreWithTheSameTransactionIDs(t *testing.T, opts []cache.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var serves atomic.Pointer[zkserver.Server]
		history := func(value string) *zkserver.Server {
			srv := zkserver.Run(t)
			writer := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial)))(t)
			must.Get(writer.Create(t.Context(), "/c", nil))(t)
			must.Get(writer.Create(t.Context(), "/c/x", []byte(`"`+value+`"`)))(t)
			must.OK(t, writer.Close())
			return srv
		}
		before := history("former")
		serves.Store(before)
		c := must.Get(framework.NewClient("zk:2181", framework.WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return serves.Load().Dial(ctx, network, serves.Load().Addr())
		})))(t)
		defer c.Close()
		made := must.Get(cache.New(c, "/c", opts...))(t)
		defer made.Close()
		mustReady(t, made)
		values := cache.Of(made, model.JSON[string]())
		if got := must.Get(values.Get("/c/x"))(t); got != "former" {
			t.Fatalf("value %q, want the former", got)
		}
		events := make(chan cache.Event, 10)
		defer made.OnEvent(func(e cache.Event) { events <- e })()
		synctest.Wait()
		for len(events) > 0 {
			<-events
		}

		after := history("restored")
		serves.Store(after)
		before.Refuse()
		before.Cut()
		<-time.After(time.Minute)
		must.OK(t, made.Sync(t.Context()))
		if n, _ := made.Get("/c/x"); string(n.Data) != `"restored"` {
			t.Errorf("the cache has %q", n.Data)
		}
		if got := must.Get(values.Get("/c/x"))(t); got != "restored" {
			t.Errorf("value %q, want the restored one", got)
		}
		if len(events) == 0 && opts == nil {
			t.Error("there was no event")
		}
	})
}
