package framework

import (
	"errors"
	"time"

	"github.com/docent-go/docent/retry"
)

// maxDeletesInFlight is how many of a client's guaranteed deletions are under way at once.
const maxDeletesInFlight = 32

// Pauses between attempts at a deletion. A new connection ends a pause.
const (
	deletePause  = 100 * time.Millisecond
	refusalPause = 2 * time.Second // after a server's refusal
)

// enqueue makes a pending deletion ready for a worker. Once Close has begun, no worker attempts it.
func (d *deletes) enqueue(x deletion) {
	d.mu.Lock()
	d.queue = append(d.queue, x)
	d.mu.Unlock()
	d.employ()
}

// employ starts a worker, unless there are enough or there is nothing to do.
func (d *deletes) employ() {
	d.mu.Lock()
	wanted := d.workers < maxDeletesInFlight && len(d.queue) > 0
	if wanted {
		d.workers++
	}
	d.mu.Unlock()
	if wanted && !d.core.spawn(d.work) {
		d.dismiss()
	}
}

// dismiss records that a worker makes no more attempts.
func (d *deletes) dismiss() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.workers--
}

// work makes attempts until the queue is empty, a deletion has to be repeated, or the client is
// closed. Close waits for it.
func (d *deletes) work() {
	for {
		x, ok := d.next()
		if !ok {
			return
		}
		err := d.attempt(d.core.ctx, x)
		if x.unfinished(err) {
			d.repeat(x, err)
			return
		}
		d.finish(x, err)
	}
}

// repeat pauses and enqueues the deletion again. Meanwhile another worker replaces this worker,
// unless there is no connection: then no other deletion would succeed.
func (d *deletes) repeat(x deletion, err error) {
	pause := deletePause
	switch {
	case errors.Is(err, ErrReadOnly):
		pause = refusalPause
	case !noAnswer(err):
		pause = refusalPause
		d.logRefusal(x, err)
	}
	if d.core.presentState() != Connected {
		d.pause(pause)
		d.dismiss()
	} else {
		d.dismiss()
		d.employ()
		d.pause(pause)
	}
	d.enqueue(x)
}

// next takes a deletion from the queue. If there is none, the worker is dismissed.
func (d *deletes) next() (deletion, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 || d.core.ctx.Err() != nil {
		d.workers--
		return deletion{}, false
	}
	x := d.queue[0]
	d.queue = d.queue[1:]
	return x, true
}

// pause returns after the time, when there is a new connection, or at Close.
func (d *deletes) pause(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.core.nextConnection(retry.Failure{}):
	case <-d.core.ctx.Done():
	}
}
