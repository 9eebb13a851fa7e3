package listeners

import (
	"context"
	"sync"

	"github.com/docent-go/docent/internal/goid"
)

// A queue is one listener of a Queued and the events that it has yet to see. With mu held:
//
//   - done is not nil iff a goroutine delivers, or is about to;
//   - if there are pending events, a goroutine delivers;
//   - worker is the number of that goroutine or, until it runs, of the previous one. No other
//     goroutine has that number, because numbers are not reused.
type queue[E any] struct {
	fn      func(E)           // immutable
	onPanic func(*PanicError) // immutable
	closing chan struct{}     // closed by closedBy, once

	mu        sync.Mutex // guards following; never held while fn runs
	pending   []E
	done      chan struct{} // closed by next when nothing is pending, and then nil
	worker    uint64
	isClosing bool // closing is closed
}

func newQueue[E any](fn func(E), onPanic func(*PanicError)) *queue[E] {
	return &queue[E]{fn: fn, onPanic: onPanic, closing: make(chan struct{})}
}

// push appends e and makes sure that it will be delivered.
func (l *queue[E]) push(e E) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, e)
	if l.done == nil {
		l.done = make(chan struct{})
		go l.deliver()
	}
}

// deliver calls fn with the pending events until there are none. push starts it. If fn ends the
// goroutine, deliver starts another one. remove and Close wait for its end.
func (l *queue[E]) deliver() {
	finished := false
	defer func() {
		if !finished {
			go l.deliver()
		}
	}()

	self := goid.ID()
	l.mu.Lock()
	l.worker = self
	l.mu.Unlock()
	for e, ok := l.next(); ok; e, ok = l.next() {
		l.call(e)
	}
	finished = true
}

func (l *queue[E]) call(e E) {
	defer report(l.onPanic)
	l.fn(e)
}

// next takes the first pending event. If there is none, the caller no longer
// delivers.
func (l *queue[E]) next() (e E, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		close(l.done)
		l.done = nil
		return e, false
	}
	var none E
	e, l.pending[0] = l.pending[0], none // so that the array does not keep it alive
	l.pending = l.pending[1:]
	return e, true
}

// discard drops what is pending. It ends the queue if no push follows.
func (l *queue[E]) discard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = nil
}

// idle reports whether no goroutine delivers.
func (l *queue[E]) idle() bool {
	done, _ := l.work()
	return done == nil
}

// work returns what is closed when the goroutine that delivers has ended, nil
// if there is none, and the number of that goroutine.
func (l *queue[E]) work() (done <-chan struct{}, worker uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done, l.worker
}

// closedBy reports whether goroutine self is the one that delivers, and marks
// the queue as one whose listener has called Close if it is.
func (l *queue[E]) closedBy(self uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.worker != self {
		return false
	}
	if !l.isClosing {
		l.isClosing = true
		close(l.closing)
	}
	return true
}

// await waits until nothing is pending and fn does not run, and reports whether
// that came before the end of ctx. If the caller is inside a listener, a
// listener that has called Close is not waited for: neither the caller's own
// nor another, which waits for the caller's in turn.
func (l *queue[E]) await(ctx context.Context, inside bool) bool {
	done, _ := l.work()
	if done == nil {
		return true
	}
	var closing chan struct{} // never ready if nil
	if inside {
		closing = l.closing
	}
	select {
	case <-done:
		return true
	case <-closing:
		return true
	case <-ctx.Done():
	}
	select { // again: several may be ready, and then ctx is not what counts
	case <-done:
		return true
	case <-closing:
		return true
	default:
		return false
	}
}
