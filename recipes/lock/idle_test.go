//go:build !race

// Where timers of one bubble fire at one instant, as they do in hours of nothing, the race
// detector of Go 1.26 may crash: it has one context for all timers of a bubble.

package lock_test

import (
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// asked counts what clients ask of srv about /quiet from now on.
func asked(srv *zkserver.Server) (count func() int) {
	requests := srv.Rules().Add(fault.Rule{Path: "/quiet/**", Action: fault.Pass, Times: fault.Forever})
	return func() int {
		requests.Release()
		return requests.Hits()
	}
}

// A holder relies on its watches. So does a waiter in a queue, but once in one to two session
// timeouts it reads two znodes: its own and its predecessor's.
func TestAWaiterAsksSeldomAndAHolderNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		make newKind
		more int // requests of one that has waited, once it has the lock: the watch on its znode
		slow int // reads of a recheck
	}{
		"exclusive": {func(t testing.TB, c *framework.Client, path string, _ ...lock.Option) lock.Locker {
			return newUnfairMutex(t, c, path)
		}, 1, 1},
		"mutex":     {mutexAt, 0, 2},
		"semaphore": {semaphoreMutexAt, 1, 2},
		"write":     {writeSideAt, 0, 2},
		"multi":     {multiAt, 2, 2},
	} {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			held := mustLock(t, tc.make(t, virtualClient(t, srv), "/quiet/a"))
			c := virtualClient(t, srv)
			waiter := lockLater(t.Context(), tc.make(t, c, "/quiet/a"))
			<-time.After(time.Second) // all watches are set
			count := asked(srv)
			<-time.After(time.Hour)
			timeouts := int(time.Hour / c.Session().Timeout)
			if n := count(); n < tc.slow*(timeouts/2-1) || n > tc.slow*timeouts {
				t.Errorf("%d requests in an hour of %d session timeouts in which nothing happened", n, timeouts)
			}
			mustRelease(t, held)
			lease := granted(t, waiter, "the lock")
			synctest.Wait()
			count = asked(srv)
			<-time.After(time.Hour)
			if n := count(); n != tc.more {
				t.Errorf("%d requests in an hour of who has waited, want %d", n, tc.more)
			}
			mustRelease(t, lease)
		})
	}
}

// A write to a holder's znode, which may request its release, is read at once.
func TestAHolderLooksAtAWriteOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		operator := virtualClient(t, srv)
		held := mustLock(t, newMutex(t, virtualClient(t, srv), "/quiet/a"))
		waiter := lockLater(t.Context(), newMutex(t, virtualClient(t, srv), "/quiet/a"))
		<-time.After(time.Second)
		mustRelease(t, held)
		lease := granted(t, waiter, "the lock")
		for range 3 {
			count := asked(srv)
			must.Get(operator.Set(t.Context(), lease.Node(), []byte("something"), framework.AnyVersion))(t)
			<-time.After(time.Hour)
			if n := count(); n != 2 {
				t.Errorf("%d requests, want the write and one look", n)
			}
		}
		mustRelease(t, lease)
	})
}

// The holder is looked up for a trace that is recorded, and for no other.
func TestUnrecordedWaitReadsNoZnode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sampler sdktrace.Sampler
		want    int
	}{
		"recorded":     {sdktrace.AlwaysSample(), 1},
		"not recorded": {sdktrace.NeverSample(), 0},
	} {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			tracers := sdktrace.NewTracerProvider(sdktrace.WithSampler(tc.sampler))
			core, _ := observer.New(zap.DebugLevel) // which follows the call, recorded or not
			c := virtualClient(t, srv, framework.WithTracerProvider(tracers), framework.WithLogger(zap.New(core)))
			held := mustLock(t, newSemaphoreMutex(t, virtualClient(t, srv), "/quiet/a"))
			reads := srv.Rules().Add(fault.Rule{
				Session: c.Session().ID, Op: fault.GetData, Path: "/quiet/a/leases/*", Action: fault.Pass, Times: fault.Forever,
			})
			waiter := lockLater(t.Context(), newSemaphoreMutex(t, c, "/quiet/a"))
			<-time.After(time.Second)
			if n := reads.Hits(); n != tc.want {
				t.Errorf("%d reads of znodes among the leases, want %d", n, tc.want)
			}
			mustRelease(t, held)
			mustRelease(t, granted(t, waiter, "the lock"))
		})
	}
}
