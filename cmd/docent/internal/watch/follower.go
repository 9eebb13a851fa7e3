package watch

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/change"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/cmd/docent/internal/trace"
)

// maxHolds is how many holds a Follower keeps for the trace. The oldest are dropped.
const maxHolds = 100_000

// A Follower turns the views of a directory into events, and measures holds. One goroutine uses it.
type Follower struct {
	source change.Source
	views  change.Follower
	holds  map[string]begun
	ended  []trace.Hold
	seen   time.Time // of the last current view
}

// A begun hold has not ended. A hold of before the watch began when its znode was created, or later.
type begun struct {
	trace.Hold
	unsure   bool
	earliest time.Time // when it may have begun; zero if nothing shows that
}

// NewFollower returns a Follower of the directory at root, whose views source gives.
func NewFollower(root string, source change.Source) *Follower {
	return &Follower{source: source, views: change.Follower{Root: root}, holds: map[string]begun{}}
}

func (f *Follower) update(view inspect.View) update { return update{f.views.Root, view, f.See(view)} }

// See returns what changed since the view before.
func (f *Follower) See(view inspect.View) []change.Event {
	events := f.views.See(view)
	for i := range events {
		f.measure(&events[i])
	}
	if view.State == inspect.Current {
		f.seen = view.At
	}
	return events
}

// measure begins and ends holds.
func (f *Follower) measure(e *change.Event) {
	znode := e.Contender.Znode
	switch e.What {
	case change.Granted:
		hold := begun{Hold: holdOf(e), unsure: e.Before || e.Unsure, earliest: e.At}
		if hold.unsure {
			hold.earliest = f.seen
		}
		if created := e.Contender.Created; hold.unsure && e.Contender.Read() && created.After(f.seen) && created.Before(e.At) {
			hold.earliest = created
		}
		if e.Before && !hold.earliest.IsZero() {
			hold.From = hold.earliest
		}
		f.holds[znode] = hold
	case change.Released:
		hold, known := f.holds[znode]
		if !known {
			return
		}
		delete(f.holds, znode)
		hold.To = e.At
		e.Unsure = e.Unsure || hold.unsure
		if !hold.earliest.IsZero() {
			e.Held = hold.To.Sub(hold.earliest)
		}
		if len(f.ended) == maxHolds {
			f.ended = slices.Delete(f.ended, 0, maxHolds/4)
		}
		f.ended = append(f.ended, hold.Hold)
	case change.Queued, change.Gone, change.Revoked, change.Live, change.Stale: // no hold begins or ends
	}
}

func holdOf(e *change.Event) trace.Hold {
	h := trace.Hold{
		Lock: e.Path, Name: inspect.PartyOf(e.Contender).String(), Fence: strconv.FormatInt(e.Contender.Czxid, 10), From: e.At,
	}
	if e.Contender.Meta != nil {
		h.Owner = e.Contender.Meta.Owner
	}
	return h
}

// Holds returns all holds that the Follower saw. Those that have not ended end now.
func (f *Follower) Holds(now time.Time) []trace.Hold {
	holds := slices.Clone(f.ended)
	for _, h := range f.holds {
		h.To = now
		holds = append(holds, h.Hold)
	}
	return holds
}

// Line returns the event as a line of text, with the time in UTC.
func Line(e change.Event) string {
	line := fmt.Sprintf("%s %-8s %s", e.At.UTC().Format("15:04:05Z"), e.What, cli.Safe(e.Path))
	switch e.What {
	case change.Live:
		return line
	case change.Stale:
		if e.Cause != nil {
			line += ": " + cli.Safe(e.Cause.Error())
		}
		return line
	case change.Granted, change.Queued, change.Released, change.Gone, change.Revoked:
	}
	line += " " + show.Side(e.Contender) + " " + show.Who(e.Contender)
	return line + note(e)
}

// note says how long the contender waited or held, and what is not certain.
func note(e change.Event) string {
	switch {
	case e.Before && e.Contender.Read():
		return ", since " + e.Contender.Created.UTC().Format("2006-01-02 15:04:05Z")
	case e.What == change.Released && e.Held == 0: // nothing shows when the hold began
	case e.What == change.Released && e.Unsure:
		return ", held for at most " + show.Duration(e.Held)
	case e.What == change.Released:
		return ", held for " + show.Duration(e.Held)
	case e.What == change.Gone && e.Unsure:
		return ", waited for " + show.Duration(e.Waited) + ", perhaps it held shortly"
	case e.What == change.Gone || e.Waited > 0:
		return ", waited for " + show.Duration(e.Waited)
	}
	return ""
}
