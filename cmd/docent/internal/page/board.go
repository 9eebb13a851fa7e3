package page

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/cmd/docent/internal/waits"
)

// A hub makes boards of views, one after another. Its methods may be called concurrently.
type hub struct {
	mu      sync.Mutex // guards following
	judge   judge
	history *history
	latest  *board
	changed chan struct{} // closed and replaced when latest changes
}

// newHub returns a hub that has the board of a server that has just started.
func newHub() *hub {
	h := &hub{history: newHistory(), changed: make(chan struct{})}
	h.publish(inspect.View{State: inspect.Connecting})
	return h
}

// publish makes a board of another view.
func (h *hub) publish(view inspect.View) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publishLocked(view)
}

func (h *hub) publishLocked(view inspect.View) {
	h.latest = newBoard(view, &h.judge, h.history)
	close(h.changed)
	h.changed = make(chan struct{})
}

// board returns the latest board and a channel that is closed when there is another. If nothing changes, a finding
// is shown to who asks once it is old enough.
func (h *hub) board() (*board, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if due := h.judge.due; !due.IsZero() && !time.Now().Before(due) {
		view := h.latest.view
		view.At = due
		h.publishLocked(view)
	}
	return h.latest, h.changed
}

// A board is what the page knows at a moment. It never changes.
type board struct {
	view     inspect.View
	entries  []*entry        // by path
	matters  func() []*entry // those first that matter most; made once
	findings []finding
	graph    graph
	holds    func() map[string][]hold // by lock; made once
	unseen   []span                   // when holds were not seen
	held     int
	waiting  int
	dead     int // deadlocks
}

// An entry is a lock with what rows are sorted by.
type entry struct {
	show.Row

	lock *inspect.Lock
	mark waits.Mark
}

func newBoard(view inspect.View, judge *judge, history *history) *board {
	b := &board{view: view, entries: make([]*entry, 0, len(view.Locks))}
	contended := inspect.Snapshot{At: view.At, Complete: view.Complete}
	for i := range view.Locks {
		e := &entry{Row: show.RowOf(&view.Locks[i]), lock: &view.Locks[i]}
		if e.Holders > 0 {
			b.held++
		}
		if e.Waiting > 0 {
			contended.Locks = append(contended.Locks, view.Locks[i])
		}
		b.waiting += e.Waiting
		b.entries = append(b.entries, e)
	}
	found := judge.see(view, contended)
	b.judge(found)
	b.graph = graphOf(contended, found)
	history.see(view)
	b.holds, b.unseen = sync.OnceValue(history.snapshot()), slices.Clone(history.gaps)
	b.matters = sync.OnceValue(func() []*entry { return byMatter(b.entries) })
	return b
}

// byMatter returns the entries in the order in which they matter: the one with the longest wait, those of
// deadlocks and of what may be one, the others by their longest waits, then by their oldest holders.
func byMatter(entries []*entry) []*entry {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b *entry) int {
		return cmp.Or(
			cmp.Compare(b.mark, a.mark), show.EarliestFirst(a.Longest, b.Longest), cmp.Compare(b.Waiting, a.Waiting),
			show.EarliestFirst(a.Held, b.Held), cmp.Compare(a.lock.Path, b.lock.Path),
		)
	})
	longest := 0
	for i, e := range sorted {
		if show.EarliestFirst(e.Longest, sorted[longest].Longest) < 0 {
			longest = i
		}
	}
	if longest > 0 {
		sorted = slices.Concat(sorted[longest:longest+1], sorted[:longest], sorted[longest+1:])
	}
	return sorted
}

// matches reports whether a tab asks for the lock.
func (e *entry) matches(q query) bool {
	if q.waiting && e.Waiting == 0 {
		return false
	}
	if q.find == "" || contains(e.lock.Path, q.find) {
		return true
	}
	for i := range e.lock.Contenders {
		c := &e.lock.Contenders[i]
		if contains(nameOf(c), q.find) || c.Meta != nil && contains(c.Meta.Owner, q.find) {
			return true
		}
	}
	return false
}

func contains(text, find string) bool { return strings.Contains(strings.ToLower(text), find) }

// live reports whether the board follows the ensemble.
func (b *board) live() bool { return b.view.State == inspect.Current }
