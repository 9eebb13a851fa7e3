package watch

import (
	"slices"
	"strconv"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/change"
	"github.com/docent-go/docent/cmd/docent/internal/trace"
)

// maxHolds is how many holds a Follower keeps for the trace. The oldest are dropped.
const maxHolds = 100_000

// A Follower turns the views of a directory into events, and measures holds. One goroutine uses it.
type Follower struct {
	views change.Follower
	holds map[string]begun
	ended []trace.Hold
}

// A begun hold has not ended. A hold of before the watch began when its znode was created, or later.
type begun struct {
	trace.Hold
	unsure bool
}

// NewFollower returns a Follower for the views of root.
func NewFollower(root string) *Follower {
	return &Follower{views: change.Follower{Root: root}, holds: map[string]begun{}}
}

// See returns what changed since the view before.
func (f *Follower) See(view inspect.View) []change.Event {
	events := f.views.See(view)
	for i := range events {
		f.measure(&events[i])
	}
	return events
}

// measure begins and ends holds.
func (f *Follower) measure(e *change.Event) {
	znode := e.Contender.Znode
	switch e.What {
	case change.Granted:
		hold := begun{holdOf(e), e.Before || e.Unsure}
		if e.Before && e.Contender.Read() && e.Contender.Created.Before(e.At) {
			hold.From = e.Contender.Created
		}
		f.holds[znode] = hold
	case change.Released:
		hold, known := f.holds[znode]
		if !known {
			return
		}
		delete(f.holds, znode)
		hold.To = e.At
		e.Held, e.Unsure = hold.To.Sub(hold.From), e.Unsure || hold.unsure
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
