package listeners

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/goid"
)

// A Queued calls each of its listeners on a goroutine of the listener's own,
// from an ordered queue without bound. [NewQueued] makes one; [Queued.Close]
// ends it. A Queued whose listeners have seen every event has no goroutine.
type Queued[E any] struct {
	onPanic func(*PanicError) // immutable

	mu     sync.Mutex             // guards following; never held while a listener runs; taken before a queue's mu
	queues map[*queue[E]]struct{} // a set: thousands may be removed at once, and Notify must not wait for long
	closed bool                   // no event is accepted any more
}

// NewQueued returns a Queued without listeners. It reports every panic of a listener to onPanic, on
// that listener's goroutine; the listener is called again for the next event. A panic of onPanic
// itself is not recovered. NewQueued panics if onPanic is nil, so that no panic goes unnoticed.
func NewQueued[E any](onPanic func(*PanicError)) *Queued[E] {
	if onPanic == nil {
		panic("listeners: NewQueued: onPanic: must not be nil")
	}
	return &Queued[E]{onPanic: onPanic, queues: make(map[*queue[E]]struct{})}
}

// Add registers fn for every event that is notified from now on. It neither blocks nor calls fn.
// After Close it registers nothing. It panics if fn is nil.
//
// Remove ends the registration, drops the events that fn has not seen, and waits for a running call
// of fn. After that, fn is not called again. Inside fn, on fn's own goroutine, remove does not wait
// for that call. Elsewhere it does, so do not call it under a lock that fn takes, and two listeners
// must not remove each other.
func (q *Queued[E]) Add(fn func(E)) (remove func()) {
	if fn == nil {
		panic("listeners: Queued.Add: fn: must not be nil")
	}
	return q.add(fn)
}

// AddWith is [Queued.Add] for a listener that needs the present state. first is put in its queue at
// the registration, before every event that is notified from now on. After Close, fn is called with
// first only.
//
// To let first and the events fit without gap or repetition, hold one lock while the state changes
// and is notified. Hold it also while the state is read and passed to AddWith. That is safe,
// because neither Notify nor AddWith blocks.
func (q *Queued[E]) AddWith(first E, fn func(E)) (remove func()) {
	if fn == nil {
		panic("listeners: Queued.AddWith: fn: must not be nil")
	}
	return q.add(fn, first)
}

func (q *Queued[E]) add(fn func(E), first ...E) (remove func()) {
	l := newQueue(fn, q.onPanic)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		// Only a later Close asks for these, and only while they are at work.
		maps.DeleteFunc(q.queues, func(l *queue[E], _ struct{}) bool { return l.idle() })
	}
	q.queues[l] = struct{}{}
	for _, e := range first {
		l.push(e)
	}
	return func() { q.remove(l) }
}

func (q *Queued[E]) remove(l *queue[E]) {
	q.mu.Lock()
	delete(q.queues, l)
	q.mu.Unlock()

	l.discard()
	if done, worker := l.work(); done != nil && worker != goid.ID() {
		<-done
	}
}

// Notify puts e in the queue of every listener and returns, without waiting for
// any of them. After Close it does nothing.
func (q *Queued[E]) Notify(e E) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	for l := range q.queues {
		l.push(e)
	}
}

// Close accepts no further event, and waits until every listener has seen all earlier events.
// Inside a listener, Close does not wait for that listener, which sees the rest of its events after
// the call. Nor does it then wait for another listener that has called Close.
//
// If ctx ends first, Close returns an error that matches ctx.Err(), shows the cause of ctx, and has
// the number of listeners that still run. These continue through their queues. Close may be called
// again, to wait again. It panics if ctx is nil.
func (q *Queued[E]) Close(ctx context.Context) error {
	if ctx == nil {
		panic("listeners: Queued.Close: ctx: must not be nil")
	}
	q.mu.Lock()
	q.closed = true
	queues := slices.Collect(maps.Keys(q.queues))
	q.mu.Unlock()

	self := goid.ID()
	inside := false
	for _, l := range queues {
		if l.closedBy(self) {
			inside = true
		}
	}
	late := 0
	for _, l := range queues {
		if !l.await(ctx, inside) {
			late++
		}
	}
	if late == 0 {
		return nil
	}
	err := fmt.Errorf("listeners: close: %d of %d listeners still at work: %w", late, len(queues), ctx.Err())
	return cause.Join(ctx, err)
}
