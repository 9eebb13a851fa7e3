package history_test

import (
	"context"
	"errors"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/lock"
)

// A fakeLease is a lease without a lock.
type fakeLease struct {
	err      error // of the lease
	lost     chan struct{}
	released int
}

func (l *fakeLease) Err() error                    { return l.err }
func (l *fakeLease) Lost() <-chan struct{}         { return l.lost }
func (l *fakeLease) Release(context.Context) error { l.released++; return l.err }
func (l *fakeLease) Fence() int64                  { return 5 }
func (l *fakeLease) Members() []*lock.Lease        { return nil }
func (l *fakeLease) Path() string                  { return "/a" }
func (l *fakeLease) Guard() framework.TxnOp        { return framework.OpCheck("/a", framework.AnyVersion) }

// hold records that a client is granted the lease. The records follow one another in the channel.
func (l *fakeLease) hold(t testing.TB, clock, session func() int64) (*history.Hold, <-chan history.Record) {
	t.Helper()
	records := make(chan history.Record, 10)
	r := history.NewRecorder("x", clock, func(r history.Record) { records <- r })
	e := history.Entry{Model: history.Mutex(), Group: "/a", Owner: "x", Session: session}
	return must.Get(r.Lock(t.Context(), e, func(context.Context) (history.Lease, error) { return l, nil }))(t), records
}

func TestAGrantHasItsSession(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	close(closed)
	for _, c := range []struct {
		name  string
		lease *fakeLease
		next  int64 // the client's session after the grant, which was asked for in session 1
		want  int64
	}{
		{"of one session", &fakeLease{}, 1, 1},
		{"that was waited for across the end of a session", &fakeLease{}, 2, 2},
		{"that was lost at once, with its session", &fakeLease{err: lock.ErrLost, lost: closed}, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			session := int64(1)
			h, records := c.lease.hold(t, func() int64 { return 1 }, func() int64 {
				defer func() { session = c.next }()
				return session
			})
			if got := (<-records).Session; got != c.want {
				t.Errorf("session %d, want %d", got, c.want)
			}
			if err := h.Release(t.Context()); !errors.Is(err, c.lease.err) {
				t.Error(err)
			}
		})
	}
}
