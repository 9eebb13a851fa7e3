package page

import (
	"strings"
	"time"

	"github.com/docent-go/docent/recipes/inspect"
)

// A board is what the page knows at a moment. It never changes.
type board struct {
	view     inspect.View
	entries  []entry // by path
	findings []finding
	graph    graph
	holds    map[string][]hold // by lock
	held     int
	waiting  int
	dead     int // deadlocks
}

// An entry is a lock with what rows are sorted by.
type entry struct {
	lock    *inspect.Lock
	held    time.Time // the oldest holder's; zero for none
	longest time.Time // the oldest waiter's; zero for none
	waiting int

	dead     bool // part of a deadlock
	possible bool // part of what may be one
}

// A collector makes boards of views, one after another.
type collector struct {
	history *history
	judge   judge
}

func (c *collector) board(view inspect.View) *board {
	b := &board{view: view, entries: make([]entry, 0, len(view.Locks))}
	contended := inspect.Snapshot{At: view.At, Complete: view.Complete}
	for i := range view.Locks {
		e := entryOf(&view.Locks[i])
		if !e.held.IsZero() {
			b.held++
		}
		if e.waiting > 0 {
			contended.Locks = append(contended.Locks, view.Locks[i])
		}
		b.waiting += e.waiting
		b.entries = append(b.entries, e)
	}
	found := c.judge.see(view, contended)
	b.judge(found)
	b.graph = graphOf(contended, found)
	b.holds = c.history.see(view)
	return b
}

func entryOf(l *inspect.Lock) entry {
	e := entry{lock: l}
	for i := range l.Contenders {
		c := &l.Contenders[i]
		switch c.State {
		case inspect.Holds:
			e.held = oldest(e.held, c.Created)
		case inspect.Waits:
			e.waiting++
			e.longest = oldest(e.longest, c.Created)
		case inspect.Unknown: // it is in the queue that the page shows
		}
	}
	return e
}

// oldest returns the earlier time. Zero is none.
func oldest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// matches reports whether a tab asks for the lock.
func (e *entry) matches(q query) bool {
	if q.waiting && e.waiting == 0 {
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
