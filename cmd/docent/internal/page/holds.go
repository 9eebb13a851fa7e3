package page

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/change"
	"github.com/docent-go/docent/cmd/docent/internal/trace"
)

const (
	historySpan = 10 * time.Minute
	historyMax  = 20_000
)

// A hold is a time for which a contender held a lock, as the page saw it.
type hold struct {
	Name   string `json:"name"`
	Owner  string `json:"owner,omitempty"`
	Fence  string `json:"fence"`
	From   int64  `json:"from"`             // ms
	To     int64  `json:"to"`               // ms; 0 if it holds
	Before bool   `json:"before,omitempty"` // it held before the page began to look
	Unsure bool   `json:"unsure,omitempty"` // it ended while the page did not see the ensemble

	lock string
}

// A span is a time.
type span struct {
	From int64 `json:"from"` // ms; 0 is always
	To   int64 `json:"to"`   // ms; 0 if it goes on
}

// A history has the holds of the last ten minutes. One goroutine uses it.
type history struct {
	views change.Follower
	held  map[string]hold // that have not ended, by the holder's znode
	ended []hold          // by end; those that are in it never change, so boards share them
	gaps  []span          // for which it may lack holds, in order; no live view is seen while the last one goes on
}

// maxGaps is how many gaps are kept. The oldest are joined.
const maxGaps = 20

func newHistory() *history { return &history{held: map[string]hold{}, gaps: []span{{}}} }

// see takes a view into the history.
func (h *history) see(view inspect.View) {
	last := len(h.gaps) - 1
	blind := last >= 0 && h.gaps[last].To == 0
	switch {
	case blind && view.State == inspect.Current:
		h.gaps[last].To = millis(view.At)
	case !blind && view.State != inspect.Current:
		h.gaps = append(h.gaps, span{From: millis(view.Since)})
		if len(h.gaps) > maxGaps {
			h.gaps[1].From = h.gaps[0].From
			h.gaps = h.gaps[1:]
		}
	}
	for _, e := range h.views.See(view) {
		h.apply(e)
	}
	h.forget(millis(view.At.Add(-historySpan)))
}

// apply begins or ends the hold that an event is about.
func (h *history) apply(e change.Event) {
	znode := e.Contender.Znode
	switch e.What {
	case change.Granted:
		h.held[znode] = begin(e)
	case change.Released, change.Queued: // one that seemed to hold may wait
		if o, held := h.held[znode]; held {
			delete(h.held, znode)
			o.To, o.Unsure = millis(e.At), e.Unsure
			h.ended = append(h.ended, o)
		}
	case change.Gone, change.Revoked, change.Live, change.Stale: // no hold begins or ends
	}
}

// begin returns the hold of a contender that is seen to hold for the first time. One that never
// waited holds since its znode was created. The clock of the servers may be ahead.
func begin(e change.Event) hold {
	c := &e.Contender
	d := hold{Name: nameOf(c), Fence: fenceText(c.Czxid), From: millis(e.At), Before: e.Before, lock: e.Path}
	if c.Meta != nil {
		d.Owner = cut(c.Meta.Owner)
	}
	if c.Read() && e.Waited == 0 {
		d.From = min(d.From, millis(c.Created))
	}
	return d
}

// forget drops holds and gaps that ended before a time, and the oldest of too many holds: since then holds may lack.
func (h *history) forget(before int64) {
	lacks := before
	drop := max(0, len(h.ended)-historyMax)
	if drop > 0 {
		lacks = max(before, h.ended[drop-1].To)
	}
	h.gaps = slices.DeleteFunc(h.gaps, func(s span) bool { return s.To != 0 && s.To <= lacks })
	if lacks > before {
		h.gaps = slices.Insert(h.gaps, 0, span{To: lacks})
	}
	for drop < len(h.ended) && h.ended[drop].To < before {
		drop++
	}
	h.ended = h.ended[drop:]
}

// snapshot returns what gives the holds by lock, each lock's in the order of their begins.
func (h *history) snapshot() func() map[string][]hold {
	held, ended := slices.Collect(maps.Values(h.held)), h.ended
	return func() map[string][]hold {
		holds := make(map[string][]hold)
		for _, o := range slices.Concat(ended, held) {
			holds[o.lock] = append(holds[o.lock], o)
		}
		for _, all := range holds {
			slices.SortFunc(all, func(a, b hold) int {
				return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Fence, b.Fence))
			})
		}
		return holds
	}
}

// A lane is the holds of one lock in the timeline.
type lane struct {
	Path   string `json:"path"`
	Holds  []hold `json:"holds"`
	More   int    `json:"more,omitempty"`   // older holds that are left out
	Left   *span  `json:"left,omitempty"`   // from the begin of the first of those to the end of the last
	Unseen []span `json:"unseen,omitempty"` // when the holder of the lock was not seen
}

const (
	defaultLanes = 10  // if the tab picks none
	maxBars      = 120 // of a lane
)

// lanes returns the timeline of the locks that the tab picks, else of the first rows.
func (b *board) lanes(pick []string, rows []row) []lane {
	if len(pick) == 0 {
		for _, r := range rows {
			if len(pick) < defaultLanes && len(b.holds()[r.Path]) > 0 {
				pick = append(pick, r.Path)
			}
		}
	}
	lanes := []lane{}
	for _, path := range pick {
		holds := b.holds()[path]
		more := max(0, len(holds)-maxBars)
		lanes = append(lanes, lane{
			Path: path, Holds: append([]hold{}, holds[more:]...), More: more, Left: extent(holds[:more]), Unseen: b.unseen,
		})
	}
	return lanes
}

// extent returns the time from the first begin to the last end of holds, nil for no hold.
func extent(holds []hold) *span {
	if len(holds) == 0 {
		return nil
	}
	all := &span{From: holds[0].From}
	for _, h := range holds {
		if h.To == 0 { // it holds
			return &span{From: all.From}
		}
		all.To = max(all.To, h.To)
	}
	return all
}

// trace returns the holds of the last minutes in Chrome's trace format.
func (s *Server) trace(w http.ResponseWriter, _ *http.Request) {
	b, _ := s.hub.board()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="holds.json"`)
	_ = trace.Write(w, b.traced()) // an error means that the browser has gone
}

// traced returns the holds for a trace. Those that have not ended end now.
func (b *board) traced() []trace.Hold {
	var all []trace.Hold
	for path, holds := range b.holds() {
		for _, h := range holds {
			all = append(all, trace.Hold{
				Lock: path, Name: h.Name, Owner: h.Owner, Fence: h.Fence,
				From: time.UnixMilli(h.From), To: time.UnixMilli(cmp.Or(h.To, millis(b.view.At))),
			})
		}
	}
	return all
}
