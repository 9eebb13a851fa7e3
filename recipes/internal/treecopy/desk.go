package treecopy

import (
	"sync"
	"time"

	"github.com/docent-go/docent/recipes/internal/readlist"
	"github.com/docent-go/docent/recipes/internal/treesource"
)

// A desk is what other goroutines and the loop have in common.
type desk struct {
	mu      sync.Mutex        // guards following; never held across a request or a callback
	source  treesource.Source // nil before there is one
	wake    func()            // wakes the loop if it waits; nil if it does not
	waiters []*waiter         // that the loop has yet to see
}

// A waiter is a call of Sync.
type waiter struct {
	done  chan struct{} // closed by the loop when the copy has what was committed before the call
	until uint64        // the latest mark when the loop saw it
}

// Sync returns a channel that is closed when the loop has read all that it has been notified of by now.
func (l *Loop) Sync() <-chan struct{} {
	w := &waiter{done: make(chan struct{})}
	l.desk.mu.Lock()
	defer l.desk.mu.Unlock()
	l.desk.waiters = append(l.desk.waiters, w)
	if l.desk.wake != nil {
		l.desk.wake()
	}
	return w.done
}

// Valid reports whether the server notifies of every change by now.
func (l *Loop) Valid() bool {
	l.desk.mu.Lock()
	defer l.desk.mu.Unlock()
	return l.desk.source != nil && l.desk.source.Valid()
}

// admit tells the calls of Sync for which mark they have to wait. quiet says that no change came
// after the replies that they had.
func (l *Loop) admit(quiet bool) {
	switch {
	case len(l.callers) == 0 || l.lost:
		return
	case l.marks.Empty() && quiet:
		l.edit().publish(true)
	case l.marks.Empty():
		l.marks.Add(l.opts.Extent.Root, readlist.JustData) // the reply settles the snapshot
	}
	for _, w := range l.callers {
		w.until = l.marks.Last()
	}
	l.waiters = append(l.waiters, l.callers...)
	l.callers = nil
}

// settle notifies those who wait for what has been read by now.
func (l *Loop) settle() {
	if l.asks || l.marks.Deep() {
		return
	}
	oldest := l.marks.Oldest()
	var waiting []*waiter
	for _, w := range l.waiters {
		if w.until < oldest {
			close(w.done)
		} else {
			waiting = append(waiting, w)
		}
	}
	l.waiters = waiting
	if l.fill < oldest {
		l.opts.Filled(time.Since(l.began))
	}
}
