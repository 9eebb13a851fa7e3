package history_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/internal/history"
)

// TestALossIsRecordedWhenLostIsClosed has leases whose Err reports the loss before Lost is closed,
// or though Lost is never closed.
func TestALossIsRecordedWhenLostIsClosed(t *testing.T) {
	t.Parallel()
	const late, never = 3 * time.Second, time.Hour
	for name, tc := range map[string]struct {
		closes  time.Duration // when Lost is closed, from the call on
		atLeast time.Duration // when the loss is recorded
	}{
		"Err is early":         {late, late},
		"Lost is never closed": {never, 10 * time.Second},
		"Lost is in time":      {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				lease := &fakeLease{lost: make(chan struct{})}
				records := make(chan history.Record, 10)
				r := history.NewRecorder("x", func() int64 { return int64(time.Since(began)) }, func(r history.Record) { records <- r })
				e := history.Entry{Model: history.Mutex(), Group: "/a", Owner: "x", Session: func() int64 { return 1 }}
				h := must.Get(r.Lock(t.Context(), e, func(context.Context) (history.Lease, error) { return lease, nil }))(t)
				<-records // of the grant
				lease.err = lock.ErrLost
				closing := time.AfterFunc(tc.closes, func() { close(lease.lost) })
				defer closing.Stop()
				if h.Check() == nil {
					t.Error("the lease is held, want it lost")
				}
				got := <-records
				if got.Kind != history.Lost || got.Return < int64(tc.atLeast) {
					t.Errorf("%s at %v, want lost at %v at the earliest", got.Kind, time.Duration(got.Return), tc.atLeast)
				}
			})
		})
	}
}

// TestAReleaseOfALostLeaseIsNoRelease has Lost be closed before the release: the holder knew.
func TestAReleaseOfALostLeaseIsNoRelease(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"the holder knew": true, "the release reports it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lease := &fakeLease{lost: make(chan struct{})}
			records := make(chan history.Record, 10)
			r := history.NewRecorder("x", func() int64 { return 5 }, func(r history.Record) { records <- r })
			e := history.Entry{Model: history.Mutex(), Group: "/a", Owner: "x", Session: func() int64 { return 1 }}
			h := must.Get(r.Lock(t.Context(), e, func(context.Context) (history.Lease, error) { return lease, nil }))(t)
			<-records // of the grant
			lease.err = lock.ErrLost
			if known {
				close(lease.lost)
			}
			if h.Release(t.Context()) == nil {
				t.Error("the release reports no loss")
			}
			if got := <-records; got.Kind != history.Lost || (got.Call == 0) != known {
				t.Errorf("%s, told by a release called at %d; want a loss that a release reports: %v", got.Kind, got.Call, !known)
			}
		})
	}
}
