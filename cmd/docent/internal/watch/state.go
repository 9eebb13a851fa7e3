package watch

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/change"
	"github.com/docent-go/docent/cmd/docent/internal/show"
)

// A Page is what the screen shows.
type Page int

// The pages.
const (
	Table Page = iota // all locks
	Queue             // the contenders of one lock
	Graph             // the waiters, and the contenders in front of them
	Help
)

// An Order is how the table is sorted.
type Order int

// The orders. Each has its greatest first, but for ByPath.
const (
	ByWait Order = iota
	ByHold
	ByWaiters
	ByPath
	orders
)

// String names the order.
func (o Order) String() string {
	return [...]string{"longest wait", "longest hold", "most waiters", "path"}[o]
}

// A State is all that the screen depends on.
type State struct {
	Views    map[string]inspect.View // by root
	Recent   []change.Event          // the latest last
	Now      time.Time
	Page     Page
	Order    Order
	Find     string // text that the table's rows have
	Finding  bool   // the user types Find
	Selected string // path of a lock; the first row if it has no row
	Color    bool

	Contender string // the selected one of the queue, by its znode: no other takes its place when it has gone
	Question  string // that y answers
	Said      string // until the next key
	Top       int    // the first line that the graph or the help shows
}

// An entry is a lock with what the table is sorted by.
type entry struct {
	inspect.Lock
	show.Row
}

// all returns the locks of all views.
func (s *State) all() []entry {
	var all []entry
	for _, view := range s.Views {
		for _, l := range view.Locks {
			all = append(all, entry{l, show.RowOf(&l)})
		}
	}
	return all
}

// entries returns the rows of the table.
func (s *State) entries() []entry {
	find := strings.ToLower(s.Find)
	found := slices.DeleteFunc(s.all(), func(e entry) bool { return !e.has(find) })
	slices.SortFunc(found, func(a, b entry) int {
		byWait, byHold := show.EarliestFirst(a.Longest, b.Longest), show.EarliestFirst(a.Held, b.Held)
		path := strings.Compare(a.Path, b.Path)
		switch s.Order {
		case ByHold:
			return cmp.Or(byHold, path)
		case ByWaiters:
			return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), path)
		case ByPath:
			return path
		}
		return cmp.Or(byWait, byHold, path)
	})
	return found
}

// has reports whether the path or a contender of the lock has the text, which is in lower case.
func (e *entry) has(find string) bool {
	return strings.Contains(strings.ToLower(e.Path), find) ||
		slices.ContainsFunc(e.Contenders, func(c inspect.Contender) bool {
			return strings.Contains(strings.ToLower(show.Who(c)), find)
		})
}

// selected returns the index of the selected row.
func (s *State) selected(entries []entry) int {
	return max(0, slices.IndexFunc(entries, func(e entry) bool { return e.Path == s.Selected }))
}

// shown returns the lock whose queue is shown, and the index of its selected contender, -1 if it has gone.
func (s *State) shown() (inspect.Lock, int) {
	for _, e := range s.all() {
		if e.Path == s.Selected {
			return e.Lock, slices.IndexFunc(e.Contenders, func(c inspect.Contender) bool { return c.Znode == s.Contender })
		}
	}
	return inspect.Lock{Path: s.Selected}, -1
}

// status returns the state of the views: the worst one.
func (s *State) status() inspect.View {
	worst := inspect.View{State: inspect.Current}
	for _, view := range s.Views {
		if view.State != inspect.Current {
			worst = view
		}
	}
	if len(s.Views) == 0 {
		worst.State = inspect.Connecting
	}
	return worst
}
