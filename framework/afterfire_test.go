package framework_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestAfterFireCallsUnlessStopped has one function called by the event, one after it,
// and one stopped before it.
func TestAfterFireCallsUnlessStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		c := connect(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(20*time.Second))
		defer c.Close()
		mustCreate(t, c, "/after", "1")
		watch := func() *framework.Watch {
			w := must.Get(c.Watch(t.Context(), "/after", framework.WatchData))(t)
			return w
		}
		calls := make(chan string, 3)
		w, stopped, closed := watch(), watch(), watch()
		stop := w.AfterFire(func() { calls <- "by the event" })
		prevent := stopped.AfterFire(func() { calls <- "though stopped" })
		closed.AfterFire(func() { calls <- "though closed" })
		closed.Close()
		if first, again := prevent(), prevent(); !first || again {
			t.Errorf("stop returned %v, and then %v", first, again)
		}
		must.Get(c.Set(t.Context(), "/after", nil, framework.AnyVersion))(t)
		if got := <-calls; got != "by the event" || stop() {
			t.Errorf("called %s, or stopped after that", got)
		}
		late := w.AfterFire(func() { calls <- "after it" })
		if got := <-calls; got != "after it" || late() {
			t.Errorf("called %s, or stopped after that", got)
		}
		synctest.Wait()
		if len(calls) > 0 {
			t.Errorf("called %s", <-calls)
		}
	})
}
