package chaos_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/lease"
)

// meetingSize is how many members meet at a double barrier, of which each epoch has one. Each worker has
// two goroutines that come, so there are more than enough, also if some are stopped.
const meetingSize = 3

// The checks of workers at barriers, as counts.
const (
	metAll    = "met others at a double barrier"
	leftAll   = "left a double barrier with others"
	cameAgain = "entered a double barrier again after a limit of time"
	waitedFor = "waited for the removal of a barrier"
)

// The kinds of reports of a member: its Call is before the call that it tells of, and its Return after
// it. A member that enters or leaves says so first. Withdrew means that Enter returned an error.
const (
	entering history.Kind = "entering"
	entered  history.Kind = "entered"
	withdrew history.Kind = "withdrew"
	leaving  history.Kind = "leaving"
	left     history.Kind = "left"
)

func (w *worker) attendants() []errand {
	return []errand{{"member 1", w.attendant, longRest}, {"member 2", w.attendant, longRest}, {"gate", w.gate, longRest}}
}

// attendant enters the double barrier of the present epoch, once, and leaves it. It often withdraws
// before, and comes again at once.
func (w *worker) attendant(ctx context.Context, t task) {
	path := w.path("meeting")
	d, err := barrier.NewDouble(w.client, path, meetingSize)
	if err != nil {
		panic(err)
	}
	report := func(kind history.Kind, call, fence int64) {
		w.emit(report{Record: history.Record{Kind: kind, Owner: t.owner, Group: path, Session: w.client.Session().ID, Call: call, Return: history.Monotonic(), Fence: fence}})
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var place *lease.Lease
	for n := 0; place == nil; n++ {
		attempt, cancel := limited, context.CancelFunc(func() {})
		if t.rand.IntN(3) > 0 {
			attempt, cancel = context.WithTimeout(limited, t.between(time.Millisecond, longRest))
		}
		call := history.Monotonic()
		report(entering, call, 0)
		place, err = d.Enter(attempt)
		cancel()
		if err != nil {
			report(withdrew, call, 0)
			if limited.Err() != nil || w.path("meeting") != path {
				return
			}
			continue
		}
		report(entered, call, place.Fence())
		if n > 0 {
			w.did(cameAgain)
		}
	}
	w.did(metAll)
	pause(limited, t.between(0, longRest))
	call := history.Monotonic()
	if place.Err() == nil { // so it was in at call
		report(leaving, call, 0)
	}
	err = d.Leave(limited, place)
	switch {
	case err == nil:
		report(left, call, 0)
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
func (r *run) checkMeetings(o *oracle) {
	reports := r.board.reported(entering, entered, withdrew, leaving, left)
	r.mu.Lock()
	revoked := make(map[int64]bool) // its client hears late that it is out
	for _, v := range r.revokes {
		revoked[v.session] = true
	}
	r.mu.Unlock()
	reports = slices.DeleteFunc(reports, func(m report) bool { return m.Kind == leaving && revoked[m.Session] })
	for _, fault := range o.badMeetings(reports) {
		r.fail(errors.New(fault))
	}
}

// A stay is the time, in milliseconds, from a call of Enter until the member's znode is deleted.
type stay struct {
	owner    string
	from, to int64
}

// badMeetings returns what is wrong with the meetings. While a member's Enter ran there was a moment at
// which meetingSize different members were in: what the same member left behind does not count. No member
// has left while another one is in that has yet to begin to leave.
func (o *oracle) badMeetings(reports []report) (faults []string) {
	groups := make(map[string][]report)
	for _, r := range reports {
		groups[r.Group] = append(groups[r.Group], r)
	}
	for group, all := range groups {
		stays := o.stays(group, all)
		for _, r := range all {
			switch r.Kind {
			case entered:
				if most := mostTogether(stays, onWall(r, r.Call), r.Wall); most < meetingSize {
					faults = append(faults, fmt.Sprintf("all enter together: %s entered %s at %#x with %d of %d members", r.Owner, group, r.Fence, most, meetingSize))
				}
			case left:
				if i := slices.IndexFunc(all, func(other report) bool {
					return other.Kind == leaving && other.Call > r.Return && wasIn(all, other, r.Call)
				}); i >= 0 {
					faults = append(faults, fmt.Sprintf("all leave together: %s left %s before %s", r.Owner, group, all[i].Owner))
				}
			}
		}
	}
	return faults
}

// onWall returns a time of a report in milliseconds of the wall clock.
func onWall(r report, at int64) int64 { return r.Wall - (r.Return-at+999_999)/1_000_000 }

// stays returns the stays of all calls of Enter of one double barrier. The znodes of a client that was
// killed before it could report its session count for one member each.
func (o *oracle) stays(group string, all []report) (stays []stay) {
	paths := o.children(group)
	for _, r := range all {
		if r.Kind != entering {
			continue
		}
		s := stay{r.Owner, onWall(r, r.Call), onWall(r, r.Call)}
		until := int64(math.MaxInt64) // it never returned
		for _, end := range all {
			if end.Owner == r.Owner && end.Call == r.Call && (end.Kind == entered || end.Kind == withdrew) {
				until = end.Wall
			}
		}
		for _, path := range paths {
			for _, v := range o.versions[path] {
				if o.isOf(v.owner, r.Client) && s.from <= v.wall && v.wall <= until {
					s.to = max(s.to, v.over())
				}
			}
		}
		stays = append(stays, s)
	}
	for _, path := range paths {
		for _, v := range o.versions[path] {
			if v.owner != 0 && o.clients[v.owner] == "" {
				stays = append(stays, stay{path, v.wall, v.over()})
			}
		}
	}
	return stays
}

// mostTogether returns the greatest number of different owners at one moment of a time.
func mostTogether(stays []stay, from, to int64) (most int) {
	moments := []int64{from}
	for _, s := range stays {
		if from < s.from && s.from <= to {
			moments = append(moments, s.from)
		}
	}
	for _, at := range moments {
		owners := make(map[string]bool)
		for _, s := range stays {
			if s.from <= at && at <= s.to {
				owners[s.owner] = true
			}
		}
		most = max(most, len(owners))
	}
	return most
}

// wasIn reports whether the member of the report had entered before the moment.
func wasIn(all []report, member report, at int64) bool {
	return slices.ContainsFunc(all, func(r report) bool {
		return r.Kind == entered && r.Owner == member.Owner && r.Return < at
	})
}

func TestBadMeetings(t *testing.T) {
	t.Parallel()
	const ms = 1_000_000
	// The times of reports are milliseconds of both clocks. Each znode is created as its Enter is called.
	is := func(kind history.Kind, owner string, call, ret int64) report {
		return report{Record: history.Record{Kind: kind, Client: owner, Owner: owner, Group: "/a", Call: call * ms, Return: ret * ms}, Wall: ret}
	}
	member := func(owner int64, from, to int64) []txn {
		path := fmt.Sprintf("/a/%d-%d", owner, from)
		all := []txn{{zxid: 1000*from + owner, session: owner, wall: from, kind: txnCreate, path: path, ephemeral: true}}
		if to > 0 {
			all = append(all, txn{zxid: 1000*to + owner, session: owner, wall: to, kind: txnDelete, path: path})
		}
		return all
	}
	clients := map[int64]string{1: "x", 2: "y", 3: "z"}
	three := slices.Concat(member(1, 1, 0), member(2, 2, 0), member(3, 3, 0))
	come := []report{
		is(entering, "x", 1, 1), is(entering, "y", 2, 2), is(entering, "z", 3, 3),
		is(entered, "x", 1, 4), is(entered, "y", 2, 5), is(leaving, "x", 10, 10),
	}
	for name, c := range map[string]struct {
		znodes  []txn
		reports []report
		faults  int
	}{
		"together":                {three, append(slices.Clone(come), is(leaving, "y", 11, 11), is(left, "x", 10, 12)), 0},
		"one entered before two":  {three, []report{is(entering, "x", 1, 1), is(entered, "x", 1, 2)}, 1},
		"one left before another": {three, append(slices.Clone(come), is(left, "x", 10, 12), is(leaving, "y", 13, 13)), 1},
		"another one was lost":    {three, append(slices.Clone(come), is(left, "x", 10, 12)), 0},
		"one counts twice": {
			slices.Concat(member(1, 1, 0), member(1, 4, 0), member(2, 2, 0)),
			[]report{is(entering, "x", 1, 1), is(withdrew, "x", 1, 3), is(entering, "y", 2, 2), is(entering, "x", 4, 4), is(entered, "x", 4, 9)},
			1,
		},
		"one had withdrawn": {
			slices.Concat(member(1, 1, 3), member(2, 2, 0), member(3, 5, 0)),
			[]report{is(entering, "x", 1, 1), is(withdrew, "x", 1, 4), is(entering, "y", 2, 2), is(entering, "z", 5, 5), is(entered, "y", 2, 9)},
			1,
		},
		"one had withdrawn, and its deletion was late": {
			slices.Concat(member(1, 1, 8), member(2, 2, 0), member(3, 5, 0)),
			[]report{is(entering, "x", 1, 1), is(withdrew, "x", 1, 4), is(entering, "y", 2, 2), is(entering, "z", 5, 5), is(entered, "y", 2, 9)},
			0,
		},
	} {
		slices.SortFunc(c.znodes, func(a, b txn) int { return cmp.Compare(a.zxid, b.zxid) })
		o := &oracle{grow(c.znodes), clients}
		if faults := o.badMeetings(c.reports); len(faults) != c.faults {
			t.Errorf("%s: %q, want %d faults", name, faults, c.faults)
		}
	}
}
