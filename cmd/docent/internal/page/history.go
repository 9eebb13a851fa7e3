package page

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
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
	holds   map[string][]hold // by lock, and by begin; a slice never changes
	ended   []ended           // by end
	last    []inspect.Lock    // of the last live view
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
		h.update(view)
	} else {
		h.miss(millis(view.Since))
	}
	h.blind = view.State != inspect.Current
	h.forget(millis(view.At.Add(-historySpan)))
	return maps.Clone(h.holds)
}

// look notes that the locks are seen from now on.
func (h *history) look(now int64) {
	switch {
	case !h.started:
		h.gaps = []span{{To: now}}
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

// update compares the locks with those of the last live view. Both are in the order of their paths.
func (h *history) update(view inspect.View) {
	now, old := millis(view.At), h.last
	known := len(h.ended)
	for i := range view.Locks {
		l := &view.Locks[i]
		for len(old) > 0 && old[0].Path < l.Path {
			h.change(&old[0], &inspect.Lock{Path: old[0].Path}, now)
			old = old[1:]
		}
		before := &inspect.Lock{}
		if len(old) > 0 && old[0].Path == l.Path {
			before, old = &old[0], old[1:]
		}
		if !unchanged(before, l) {
			h.change(before, l, now)
		}
	}
	for i := range old {
		h.change(&old[i], &inspect.Lock{Path: old[i].Path}, now)
	}
	slices.SortFunc(h.ended[known:], func(a, b ended) int { return cmp.Compare(a.holder.czxid, b.holder.czxid) })
	h.last, h.started = view.Locks, true
}

// unchanged reports whether both are the same lock of two views. Views never change, so it need not
// compare the contenders.
func unchanged(a, b *inspect.Lock) bool {
	return len(a.Contenders) == len(b.Contenders) && len(a.Contenders) > 0 && &a.Contenders[0] == &b.Contenders[0]
}

// change notes the holds of one lock that have begun and ended.
func (h *history) change(before, l *inspect.Lock, now int64) {
	holding, waited, known := map[holder]bool{}, map[holder]bool{}, map[holder]bool{}
	for i := range l.Contenders {
		if c := &l.Contenders[i]; c.State == inspect.Holds {
			holding[holderOf(c)] = true
		}
	}
	for i := range before.Contenders {
		if c := &before.Contenders[i]; c.State == inspect.Waits {
			waited[holderOf(c)] = true
		}
	}
	holds := slices.Clone(h.holds[l.Path])
	for i := range holds {
		o := &holds[i]
		if o.To != 0 {
			continue
		}
		if known[o.holder] = true; !holding[o.holder] {
			o.To, o.Unsure = now, h.blind
			h.ended = append(h.ended, ended{lock: l.Path, holder: o.holder, to: now})
		}
	}
	for i := range l.Contenders {
		if c := &l.Contenders[i]; c.State == inspect.Holds && !known[holderOf(c)] {
			holds = append(holds, h.begin(c, waited[holderOf(c)], now))
		}
	}
	h.put(l.Path, holds)
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
func (h *history) begin(c *inspect.Contender, waited bool, now int64) hold {
	d := hold{Name: nameOf(c), Fence: fenceText(c.Czxid), From: now, holder: holderOf(c)}
	if c.Meta != nil {
		d.Owner = cut(c.Meta.Owner)
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
