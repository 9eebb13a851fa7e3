package usercall

import (
	"context"
	"sync"
	"time"
)

const (
	// queuePatience is how long [Queue.Do] waits for its function. A function that does not block
	// takes microseconds, so its caller finds the effect.
	queuePatience = 10 * time.Millisecond
	// maxQueued is how many functions a Queue keeps while one of them blocks.
	maxQueued = 1000
)

// A Queue calls functions of the user's that may block forever or panic: a log
// sink, for example. It calls them one after another, on a goroutine that exists while there are any.
// The zero value is ready for use. The methods may be called concurrently.
type Queue struct {
	mu      sync.Mutex // guards following; never held while a function runs
	calls   []queuedCall
	running bool // there is a goroutine
	stuck   bool // the present call has taken longer than queuePatience
}

type queuedCall struct {
	fn   func()
	done chan struct{} // closed when fn has ended
}

// Do puts fn in the queue, and waits a moment for its end, unless an earlier function blocks. It
// returns false if the queue is full: fn is not called then.
func (q *Queue) Do(fn func()) bool {
	call, wait, ok := q.add(fn)
	if !wait {
		return ok
	}
	limit := time.NewTimer(queuePatience)
	defer limit.Stop()
	select {
	case <-call.done:
	case <-limit.C:
		q.mu.Lock()
		q.stuck = q.running
		q.mu.Unlock()
	}
	return true
}

func (q *Queue) add(fn func()) (call queuedCall, wait, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.calls) >= maxQueued {
		return queuedCall{}, false, false
	}
	call = queuedCall{fn, make(chan struct{})}
	q.calls = append(q.calls, call)
	if !q.running {
		q.running = true
		go q.run() // ends when the queue is empty; Flush waits for it
	}
	return call, !q.stuck, true
}

// Flush waits until all functions that are in the queue have been called, or until ctx ends.
func (q *Queue) Flush(ctx context.Context) error {
	q.mu.Lock()
	idle := !q.running
	q.mu.Unlock()
	if idle {
		return nil
	}
	call, _, ok := q.add(func() {})
	if !ok {
		call.done = nil // full, so a function blocks
	}
	select {
	case <-call.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *Queue) run() {
	for q.one() {
	}
}

// one makes the next call. It returns false if there is none.
func (q *Queue) one() (more bool) {
	q.mu.Lock()
	if len(q.calls) == 0 {
		q.running, q.stuck, q.calls = false, false, nil
		q.mu.Unlock()
		return false
	}
	call := q.calls[0]
	q.calls = q.calls[1:]
	q.mu.Unlock()
	defer func() {
		_ = recover() // of a log sink: there is nowhere to report it
		q.mu.Lock()
		q.stuck = false
		q.mu.Unlock()
		close(call.done)
		more = true
	}()
	call.fn()
	return true
}
