package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/locktel"
)

// TestALeaseOfASessionThatIsOverSaysSo has the session end between the moment at which
// the attempt made sure of it and the grant.
func TestALeaseOfASessionThatIsOverSaysSo(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			const path = "/attack/over"
			srv := virtualServer(t)
			c := virtualClient(t, srv)
			m := newMutex(t, c, path, lock.WithQueuePosition(func(ahead int) {
				if ahead > 0 {
					return
				}
				over := make(chan struct{})
				defer c.OnState(func(change framework.StateChange) {
					if change.To == framework.Lost {
						close(over)
					}
				})()
				if err := srv.Expire(c.Session().ID); err != nil {
					t.Error(err)
				}
				<-over
			}))
			held := mustLock(t, m)
			select {
			case <-held.Lost():
			default:
				t.Error("a lease is returned that is not lost, of a session that is")
			}
		})
	}
}

// TestWaitersForAHandoffAreCounted as all who wait are: until they have the lock, or
// give up.
func TestWaitersForAHandoffAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		s := newService("a", func(opts ...framework.Option) *framework.Client { return virtualClient(t, srv, opts...) })
		m := newMutex(t, s.client, relayPath, lock.WithLocalHandoff(2))
		counted := func(state string, want int64) {
			t.Helper()
			synctest.Wait()
			var n int64
			for _, point := range counts(s.measured(t).Metrics)[0].Data.(metricdata.Sum[int64]).DataPoints {
				if is, _ := point.Attributes.Value(locktel.AttrState); is.AsString() == state {
					n += point.Value
				}
			}
			if n != want {
				t.Errorf("%d %s, want %d", n, state, want)
			}
		}
		held := mustLock(t, m)
		hurried, giveUp := context.WithTimeout(t.Context(), time.Second)
		defer giveUp()
		gone := lockLater(hurried, m)
		queued := []<-chan result{lockLater(t.Context(), m), lockLater(t.Context(), m), lockLater(t.Context(), m)}
		counted("waiting", 4)
		counted("held", 1)
		<-gone
		counted("waiting", 3)
		mustRelease(t, held)
		counted("waiting", 2)
		counted("held", 1)
		if err := srv.Expire(s.client.Session().ID); err != nil {
			t.Fatal(err)
		}
		for range queued {
			var got result
			select {
			case got = <-queued[0]:
			case got = <-queued[1]:
			case got = <-queued[2]:
			}
			if got.err != nil {
				t.Fatal(got.err)
			}
			_ = got.lease.Release(t.Context()) // the first one was lost
		}
		counted("waiting", 0)
		counted("held", 0)
	})
}
