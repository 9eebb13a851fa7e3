package page

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/change"
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

	holder holder
}

// A holder is a znode that never comes again: its path and its czxid.
type holder struct {
	znode string
	czxid int64
}

func holderOf(c *inspect.Contender) holder { return holder{znode: c.Znode, czxid: c.Czxid} }

// A span is a time.
type span struct {
	From int64 `json:"from"` // ms; 0 is always
	To   int64 `json:"to"`   // ms; 0 if it goes on
}

// A history has the holds of the last ten minutes. One goroutine uses it.
type history struct {
	views   change.Follower
	holds   map[string][]hold // by lock, and by begin; a slice never changes
	ended   []ended           // by end
	started bool              // a live view was seen
	blind   bool              // the view before was not live
	gaps    []span            // when views were not live, the time before the first live one included
	dropped int64             // holds that ended until then may have been dropped
}

// maxGaps is how many gaps are kept. The oldest are joined.
const maxGaps = 20

// An ended hold is kept until it is ten minutes old.
type ended struct {
	lock   string
	holder holder
	to     int64
}

func newHistory() *history { return &history{holds: map[string][]hold{}} }

// see takes a view into the history, and returns the holds of the last ten minutes, by lock.
func (h *history) see(view inspect.View) map[string][]hold {
	if view.State == inspect.Current {
		h.look(millis(view.At))
	} else {
		h.miss(millis(view.Since))
	}
	changed := make(map[string][]hold)
	for _, e := range h.views.See(view) {
		holds, known := changed[e.Path]
		if !known {
			holds = slices.Clone(h.holds[e.Path])
		}
		changed[e.Path] = h.apply(e, holds)
	}
	for path, holds := range changed {
		h.put(path, holds)
	}
	h.blind = view.State != inspect.Current
	h.forget(millis(view.At.Add(-historySpan)))
	return maps.Clone(h.holds)
}

// look notes that the locks are seen from now on.
func (h *history) look(now int64) {
	switch {
	case !h.started:
		h.gaps, h.started = []span{{To: now}}, true
	case h.blind:
		h.gaps[len(h.gaps)-1].To = now
	}
}

// miss notes that the locks are not seen since a time.
func (h *history) miss(since int64) {
	if !h.started || h.blind {
		return
	}
	h.gaps = append(h.gaps, span{From: since})
	if len(h.gaps) > maxGaps {
		h.gaps[1].From = h.gaps[0].From
		h.gaps = slices.Delete(h.gaps, 0, 1)
	}
}

// unseen returns when the history may lack holds, in order.
func (h *history) unseen() []span {
	if !h.started {
		return []span{{}}
	}
	all := slices.Clone(h.gaps)
	if h.dropped == 0 {
		return all
	}
	all = slices.DeleteFunc(all, func(s span) bool { return s.To != 0 && s.To <= h.dropped })
	return append([]span{{To: h.dropped}}, all...)
}

// apply returns the holds of a lock after an event.
func (h *history) apply(e change.Event, holds []hold) []hold {
	switch e.What {
	case change.Granted:
		return append(holds, begin(e))
	case change.Released, change.Queued: // one that seemed to hold may wait
		i := slices.IndexFunc(holds, func(o hold) bool { return o.To == 0 && o.holder.znode == e.Contender.Znode })
		if i >= 0 {
			holds[i].To, holds[i].Unsure = millis(e.At), e.Unsure
			h.ended = append(h.ended, ended{e.Path, holds[i].holder, holds[i].To})
		}
	case change.Gone, change.Revoked, change.Live, change.Stale: // no hold begins or ends
	}
	return holds
}

// put replaces the holds of a lock.
func (h *history) put(path string, holds []hold) {
	if len(holds) == 0 {
		delete(h.holds, path)
		return
	}
	slices.SortFunc(holds, func(a, b hold) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Fence, b.Fence))
	})
	h.holds[path] = holds
}

// begin returns the hold of a contender that is seen to hold for the first time. One that never
// waited holds since its znode was created. The clock of the servers may be ahead.
func begin(e change.Event) hold {
	c := &e.Contender
	d := hold{Name: nameOf(c), Fence: fenceText(c.Czxid), From: millis(e.At), Before: e.Before, holder: holderOf(c)}
	if c.Meta != nil {
		d.Owner = cut(c.Meta.Owner)
	}
	if c.Read() && e.Waited == 0 {
		d.From = min(d.From, millis(c.Created))
	}
	return d
}

// forget drops holds that ended before a time, and the oldest of too many.
func (h *history) forget(before int64) {
	drop := max(0, len(h.ended)-historyMax)
	if drop > 0 {
		h.dropped = h.ended[drop-1].to
	}
	for drop < len(h.ended) && h.ended[drop].to < before {
		drop++
	}
	h.gaps = slices.DeleteFunc(h.gaps, func(s span) bool { return s.To != 0 && s.To < before })
	if h.dropped < before {
		h.dropped = 0
	}
	for _, e := range h.ended[:drop] {
		h.put(e.lock, slices.DeleteFunc(slices.Clone(h.holds[e.lock]), func(o hold) bool {
			return o.To != 0 && o.holder == e.holder
		}))
	}
	h.ended = slices.Delete(h.ended, 0, drop)
}
