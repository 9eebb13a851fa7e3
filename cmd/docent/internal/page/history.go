package page

import (
	"cmp"
	"slices"
	"time"

	"github.com/docent-go/docent/recipes/inspect"
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
}

// A holder is a znode that never comes again: its path and its czxid.
type holder struct {
	znode string
	czxid int64
}

// A history has the holds of the last ten minutes. One goroutine uses it.
type history struct {
	holding map[holder]open
	waited  map[holder]bool // seen as waiters in the last view
	ended   []ended         // by end
	started bool            // a complete view was seen
	blind   bool            // the view before was not live
}

// An open hold has not ended.
type open struct {
	lock string
	hold
}

// An ended hold is kept until it is ten minutes old.
type ended struct {
	lock string
	hold
}

func newHistory() *history {
	return &history{holding: map[holder]open{}, waited: map[holder]bool{}}
}

// see takes a view into the history, and returns the holds of the last ten minutes, by lock.
func (h *history) see(view inspect.View) map[string][]hold {
	if view.State == inspect.Current {
		h.update(view)
	}
	h.blind = view.State != inspect.Current
	h.forget(millis(view.At.Add(-historySpan)))
	byLock := map[string][]hold{}
	for _, e := range h.ended {
		byLock[e.lock] = append(byLock[e.lock], e.hold)
	}
	for _, o := range h.holding {
		byLock[o.lock] = append(byLock[o.lock], o.hold)
	}
	for _, holds := range byLock {
		slices.SortFunc(holds, func(a, b hold) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Fence, b.Fence))
		})
	}
	return byLock
}

func (h *history) update(view inspect.View) {
	now := millis(view.At)
	holding, waited := map[holder]open{}, map[holder]bool{}
	for i := range view.Locks {
		l := &view.Locks[i]
		for j := range l.Contenders {
			c := &l.Contenders[j]
			id := holder{znode: c.Znode, czxid: c.Czxid}
			switch c.State {
			case inspect.Holds:
				o, known := h.holding[id]
				if !known {
					o = open{lock: l.Path, hold: h.begin(c, h.waited[id], now)}
				}
				holding[id] = o
			case inspect.Waits:
				waited[id] = true
			case inspect.Unknown: // it may hold or not
			}
		}
	}
	var gone []ended
	for id, o := range h.holding {
		if _, holds := holding[id]; !holds {
			o.To, o.Unsure = now, h.blind
			gone = append(gone, ended{lock: o.lock, hold: o.hold})
		}
	}
	slices.SortFunc(gone, func(a, b ended) int { return cmp.Compare(a.Fence, b.Fence) })
	h.ended = append(h.ended, gone...)
	h.holding, h.waited, h.started = holding, waited, true
}

// begin returns the hold of a contender that is seen to hold for the first time. One that never
// waited holds since its znode was created. The clock of the servers may be ahead.
func (h *history) begin(c *inspect.Contender, waited bool, now int64) hold {
	d := hold{Name: nameOf(c), Fence: fenceText(c.Czxid), From: now}
	if c.Meta != nil {
		d.Owner = c.Meta.Owner
	}
	if !waited {
		d.From = min(now, millis(c.Created))
		d.Before = !h.started
	}
	return d
}

// forget drops holds that ended before a time, and the oldest of too many.
func (h *history) forget(before int64) {
	drop := max(0, len(h.ended)-historyMax)
	for drop < len(h.ended) && h.ended[drop].To < before {
		drop++
	}
	h.ended = slices.Delete(h.ended, 0, drop)
}
