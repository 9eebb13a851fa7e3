package framework_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// goroutinesOfDeletions returns how many goroutines make or repeat guaranteed deletions, of all clients.
func goroutinesOfDeletions() (n int) {
	stacks := make([]byte, 8<<20)
	for one := range bytes.SplitSeq(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
		if bytes.Contains(one, []byte("framework.(*deletes).")) {
			n++
		}
	}
	return n
}

// Deletions that a server refuses are many if an ACL is wrong: one goroutine waits for the times of all
// of them, and each is logged once. A new connection ends their pauses. Not parallel: it counts goroutines.
func TestRefusedDeletionsPauseWithoutGoroutines(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const refused = 500
		core, logs := observer.New(zap.ErrorLevel)
		c := virtual(t, srv, framework.WithLogger(zap.New(core)))
		mustCreate(t, c, "/d", "")
		view := c.InSession(c.Session().ID)
		for i := range refused {
			mustCreate(t, c, fmt.Sprintf("/d/%d", i), "", framework.Ephemeral())
		}
		protect := func(perms acl.Permission) {
			must.Get(c.SetACL(t.Context(), "/d", []acl.Entry{{Perms: perms, Scheme: "world", ID: "anyone"}}, framework.AnyVersion))(t)
		}
		protect(acl.All &^ acl.Delete)
		attempts := srv.Rules().Add(fault.Rule{Op: fault.Delete, Action: fault.Pass, Times: fault.Forever})
		for i := range refused {
			view.Discard(fmt.Sprintf("/d/%d", i))
		}
		for round := 1; round <= 3; round++ {
			<-time.After(time.Second) // an attempt is due every two
			synctest.Wait()
			wantEqual(t, "goroutines while the deletions pause", goroutinesOfDeletions(), 1)
			wantEqual(t, "attempts at each", attempts.Hits(), round*refused)
			<-time.After(time.Second)
		}
		wantEqual(t, "refusals logged", logs.FilterMessage("guaranteed delete refused, and repeated until its session ends").Len(), refused)
		<-time.After(100 * time.Millisecond) // the next round
		synctest.Wait()
		wantEqual(t, "attempts at each", attempts.Hits(), 4*refused)
		protect(acl.All)
		srv.Cut()
		<-time.After(time.Second)
		synctest.Wait()
		wantEqual(t, "deletions that are left", c.PendingDeletes(), 0)
		wantEqual(t, "goroutines that are left", goroutinesOfDeletions(), 0)
	})
}

// Close does not wait for the end of a deletion's pause.
func TestCloseEndsThePausesOfDeletions(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		mustCreate(t, c, "/d", "", framework.Ephemeral())
		refused := srv.Rules().Add(fault.Rule{Op: fault.Delete, Action: fault.Refuse, Code: fault.NoAuth, Times: fault.Forever})
		c.InSession(c.Session().ID).Discard("/d")
		<-refused.Hit()
		sleep(100 * time.Millisecond)
		start := time.Now()
		check(t, c.Close())
		wantWithin(t, start, 0)
	})
}

// Close does not wait forever for a deletion that a meter of the user's holds up, and says that it is over. The
// deletion's late end says nothing.
func TestADeletionThatEndsAfterCloseIsOverOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var on atomic.Bool
		hung, release := make(chan struct{}), make(chan struct{})
		c := virtual(t, srv, framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()),
			sdkmetric.WithExemplarFilter(func(context.Context) bool {
				if on.CompareAndSwap(true, false) {
					close(hung)
					<-release
				}
				return false
			}))))
		mustCreate(t, c, "/z", "")
		on.Store(true)
		var over atomic.Int32
		c.InSession(c.Session().ID).Discard("/z", framework.WhenOver(func(bool) { over.Add(1) }))
		await(t, hung, "the deletion's measurement")
		check(t, c.Close())
		sleep(time.Second)
		wantEqual(t, "ends while the meter hangs", over.Load(), 1)
		close(release)
		sleep(time.Minute)
		wantEqual(t, "ends", over.Load(), 1)
	})
}
