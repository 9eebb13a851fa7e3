package history_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/lock"
)

func TestSuccession(t *testing.T) {
	t.Parallel()
	next := append(grant("2", "y", 6, 1, 31), release("2", 40, 41)...)
	holder := func(alive, observed int64) story {
		return storyOf(history.Mutex(), grant("1", "x", 5, 0, 10), lost(alive, observed), next)
	}
	h := holder(20, 25).assemble(t)
	if s := h.LossReport(); s.Losses != 1 || s.Succeeded != 1 || s.MinGap != 6 || len(s.Faults) > 0 {
		t.Errorf("a loss in time: %+v; want a gap of 6ns", s)
	}
	h = holder(32, 33).assemble(t)
	if s := h.LossReport(); len(s.Faults) != 1 || !strings.HasPrefix(s.Faults[0], "loss before succession: ") || s.MinGap != -2 {
		t.Errorf("a loss that is late: %+v; want a fault", s)
	}
	h = holder(20, 33).assemble(t)
	if s := h.LossReport(); len(s.Faults) != 1 || s.MinGap != -2 {
		t.Errorf("a loss that is notified late: %+v; want a fault", s)
	}
	h.Stop("x", 21, 32)
	if s := h.LossReport(); s.Stopped != 1 || s.Losses != 0 || s.Succeeded != 0 {
		t.Errorf("a loss in a stopped process: %+v; want it told apart", s)
	}
	releasing := lost(20, 33)
	releasing[0].Call = 24
	h = storyOf(history.Mutex(), grant("1", "x", 5, 0, 10), releasing, next).assemble(t)
	if s := h.LossReport(); s.Losses != 1 || s.Succeeded != 0 || len(s.Faults) > 0 || len(s.Released) != 1 || s.Released[0].Length() != -2 {
		t.Errorf("a loss that a release tells of: %+v; want no gap", s)
	}
	releasing[0].Call = 32
	h = storyOf(history.Mutex(), grant("1", "x", 5, 0, 10), releasing, next).assemble(t)
	if s := h.LossReport(); len(s.Faults) != 1 {
		t.Errorf("a release that reports a loss, and begins after the next grant: %+v; want a fault", s)
	}
	h = holder(20, 25).assemble(t)
	h.Stop("x", 2, 8)
	if s := h.LossReport(); s.Stopped != 1 {
		t.Errorf("a grant across a stop: %+v; want its loss told apart", s)
	}
	h = holder(32, 33).assemble(t)
	h.Revoke("x", 1, 30)
	if s := h.LossReport(); s.Revoked != 1 || len(s.Faults) > 0 {
		t.Errorf("a loss of a session that was closed: %+v; want it told apart", s)
	}
	second := lost(51, 52)
	second[0].Lease = "2"
	several := storyOf(history.Mutex(), grant("1", "x", 5, 0, 10), lost(20, 25), grant("2", "y", 6, 1, 50), second, grant("3", "z", 8, 2, 61)).assemble(t)
	if s := several.LossReport(); len(s.Gaps) != 2 || s.MinGap != 9 || s.Gaps[0].Lost.Grant.Owner != "y" || s.Gaps[1].Length() != 25 {
		t.Errorf("two losses: %+v; want the second's gap of 9ns, then the first's of 25ns", s)
	}
	readers := storyOf(history.ReadWrite(), shared("1", "x", 5, 0, 10), lost(20, 25), shared("3", "z", 7, 1, 12), next).assemble(t)
	if s := readers.LossReport(); s.MinGap != 6 {
		t.Errorf("a reader beside a reader: %+v; want the writer for its successor", s)
	}
}

func TestRegisters(t *testing.T) {
	t.Parallel()
	write := func(lease string, outcome history.Outcome, version, fence, call, ret int64) []history.Record {
		return []history.Record{{
			Kind: history.Written, Lease: lease, Register: "r", Outcome: outcome,
			Version: version, Fence: fence, Call: call, Return: ret,
		}}
	}
	seen := func(lease string, version, fence int64) []history.Record {
		return []history.Record{{Kind: history.Seen, Lease: lease, Register: "r", Version: version, Fence: fence}}
	}
	holders := storyOf(history.Mutex(), grant("1", "x", 5, 0, 10), grant("2", "y", 6, 1, 31))
	with := func(parts ...[]history.Record) *history.History {
		s := holders
		s.records = append(slices.Clip(s.records), storyOf(history.Mutex(), parts...).records...)
		return s.assemble(t)
	}

	h := with(write("1", history.Accepted, 1, 5, 11, 12), write("2", history.Accepted, 2, 6, 32, 33),
		write("1", history.Refused, 0, 5, 50, 51), lost(20, 52))
	h.Stop("x", 21, 49)
	if r := h.Registers(); r.Accepted != 2 || r.Refused != 1 || r.Late["r"] != 1 || len(r.Faults) > 0 {
		t.Errorf("a late write that is refused: %+v", r)
	}
	for name, h := range map[string]*history.History{
		"a late write that is accepted": with(write("1", history.Accepted, 1, 5, 11, 12),
			write("2", history.Accepted, 2, 6, 32, 33), write("1", history.Accepted, 3, 5, 50, 51)),
		"a late write whose fate is unknown, and that is seen": with(write("2", history.Accepted, 2, 6, 32, 33),
			write("1", history.Unknown, 0, 5, 50, 51), seen("2", 3, 5)),
		"a holder's write that is refused": with(write("1", history.Refused, 0, 5, 11, 12), standing("1", 13)),
	} {
		if r := h.Registers(); len(r.Faults) != 1 {
			t.Errorf("%s: %+v; want one fault", name, r)
		}
	}
}

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
				h, records := lease.hold(t, func() int64 { return int64(time.Since(began)) }, func() int64 { return 1 })
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
			h, records := lease.hold(t, func() int64 { return 5 }, func() int64 { return 1 })
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
