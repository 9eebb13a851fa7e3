package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/internal/history"
)

// Three members meet at a double barrier, of which each epoch has one. Each worker has two goroutines
// that come, so there are more than enough, also if some are stopped.
const meetingSize = 3

// The checks of workers at barriers, as counts.
const (
	metAll    = "met others at a double barrier"
	leftAll   = "left a double barrier with others"
	waitedFor = "waited for the removal of a barrier"
)

// The kinds of records of a member: its Call is before the call that it tells of, and its Return after
// it. A member that enters or leaves says so first.
const (
	entering history.Kind = "entering"
	entered  history.Kind = "entered"
	leaving  history.Kind = "leaving"
	left     history.Kind = "left"
)

func (w *worker) attendants() []errand {
	return []errand{{"member 1", w.attendant, longRest}, {"member 2", w.attendant, longRest}, {"gate", w.gate, longRest}}
}

// attendant enters the double barrier of the present epoch, once, and leaves it.
func (w *worker) attendant(ctx context.Context, t task) {
	path := w.path("meeting")
	d, err := barrier.NewDouble(w.client, path, meetingSize)
	if err != nil {
		panic(err)
	}
	tell := func(kind history.Kind, call int64) {
		w.emit(history.Record{Kind: kind, Client: w.Name, Owner: t.owner, Group: path, Session: w.client.Session().ID, Call: call, Return: history.Monotonic()})
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	call := history.Monotonic()
	tell(entering, call)
	place, err := d.Enter(limited)
	if err != nil {
		return
	}
	tell(entered, call)
	w.did(metAll)
	pause(limited, t.between(0, longRest))
	call = history.Monotonic()
	if place.Err() == nil { // so it was in at call
		tell(leaving, call)
	}
	err = d.Leave(limited, place)
	switch {
	case err == nil:
		tell(left, call)
		w.did(leftAll)
	case errors.Is(err, lease.ErrReleased):
		w.found("all leave together", "a place is released before its Leave: %v", err)
	}
	for w.path("meeting") == path && ctx.Err() == nil { // some may still be in
		pause(ctx, longRest)
	}
}

// gate sets a barrier and waits for its removal by another goroutine.
func (w *worker) gate(ctx context.Context, t task) {
	// A path is used once: a removal whose reply was lost may come late.
	b, err := barrier.New(w.client, fmt.Sprintf("/gate/%s/%d", w.Name, t.rand.Uint64()))
	if err != nil {
		panic(err)
	}
	var removal sync.WaitGroup
	defer removal.Wait()
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if b.Set(limited) != nil {
		return
	}
	removing := make(chan int64, 1)
	removal.Go(func() {
		pause(limited, t.between(longRest/4, longRest))
		removing <- history.Monotonic()
		for limited.Err() == nil && b.Remove(limited) != nil {
			pause(limited, shortRest)
		}
	})
	err = b.Wait(limited)
	waited, removed := history.Monotonic(), <-removing
	switch {
	case err == nil && waited < removed:
		w.found("a set barrier holds", "Wait returned %d ns before the removal", removed-waited)
	case err == nil:
		w.did(waitedFor)
	case limited.Err() == nil && !errors.Is(err, framework.ErrClosed):
		w.found("a set barrier holds", "Wait: %v", err)
	}
}

// checkMeetings is the validator of "all enter together" and "all leave together".
func (r *run) checkMeetings() {
	records := r.board.reported(entering, entered, leaving, left)
	r.mu.Lock()
	revoked := make(map[int64]bool) // its client hears late that it is out
	for _, v := range r.revokes {
		revoked[v.session] = true
	}
	r.mu.Unlock()
	records = slices.DeleteFunc(records, func(m history.Record) bool { return m.Kind == leaving && revoked[m.Session] })
	for _, fault := range badMeetings(records) {
		r.fail(errors.New(fault))
	}
}

// badMeetings returns what is wrong with the meetings. No member is in before meetingSize began to
// enter. No member has left while another one is in that has yet to begin to leave.
func badMeetings(records []history.Record) (faults []string) {
	for _, r := range records {
		switch r.Kind {
		case entered:
			came := 0
			for _, other := range records {
				if other.Kind == entering && other.Group == r.Group && other.Call < r.Return {
					came++
				}
			}
			if came < meetingSize {
				faults = append(faults, fmt.Sprintf("all enter together: %s entered %s when %d had come", r.Owner, r.Group, came))
			}
		case left:
			if i := slices.IndexFunc(records, func(other history.Record) bool {
				return other.Kind == leaving && other.Group == r.Group && other.Call > r.Return && wasIn(records, other, r.Call)
			}); i >= 0 {
				faults = append(faults, fmt.Sprintf("all leave together: %s left %s before %s", r.Owner, r.Group, records[i].Owner))
			}
		}
	}
	return faults
}

// wasIn reports whether the member of the record had entered before the moment.
func wasIn(records []history.Record, member history.Record, at int64) bool {
	return slices.ContainsFunc(records, func(r history.Record) bool {
		return r.Kind == entered && r.Owner == member.Owner && r.Group == member.Group && r.Return < at
	})
}

func TestBadMeetings(t *testing.T) {
	t.Parallel()
	is := func(kind history.Kind, owner string, call, ret int64) history.Record {
		return history.Record{Kind: kind, Owner: owner, Group: "/a", Call: call, Return: ret}
	}
	come := []history.Record{
		is(entering, "x", 1, 1), is(entering, "y", 2, 2), is(entering, "z", 3, 3),
		is(entered, "x", 1, 4), is(entered, "y", 2, 5), is(leaving, "x", 10, 10),
	}
	for name, c := range map[string]struct {
		records []history.Record
		faults  int
	}{
		"together":                {append(slices.Clone(come), is(leaving, "y", 11, 11), is(left, "x", 10, 12)), 0},
		"one entered before two":  {[]history.Record{is(entering, "x", 1, 1), is(entered, "x", 1, 2)}, 1},
		"one left before another": {append(slices.Clone(come), is(left, "x", 10, 12), is(leaving, "y", 13, 13)), 1},
		"another one was lost":    {append(slices.Clone(come), is(left, "x", 10, 12)), 0},
	} {
		if faults := badMeetings(c.records); len(faults) != c.faults {
			t.Errorf("%s: %q, want %d faults", name, faults, c.faults)
		}
	}
}
