package framework

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/retry"
)

// MaxPendingDeletes is how many guaranteed deletions a client keeps at a time:
// far more than one that works has, and few enough not to matter in memory.
const MaxPendingDeletes = 1 << 16

// maxDeletesInFlight is how many of a client's guaranteed deletions are under way at once.
const maxDeletesInFlight = 32

// deletePause is the pause between attempts at a deletion, unless a connection comes first.
const deletePause = 100 * time.Millisecond

// A deletion is a znode that is to go, whatever happens to the connection.
type deletion struct {
	session   int64  // the session that it ends with, 0 if it outlives sessions
	path      string // for a protected create, the path that was asked for
	version   int32
	czxid     int64       // of the znode that is meant, 0 for any: see [CreatedBy]
	protected *protection // set if it is not known whether, and as what, the znode exists
}

// deletes does the guaranteed deletions of a client, several at once and in no fixed
// order. A deletion that pauses or waits for a connection does not delay the others.
type deletes struct {
	core *core

	mu      sync.Mutex            // guards following
	known   map[deletion]struct{} // those that are pending
	queue   []deletion            // the pending ones that nobody attempts and that do not pause
	workers int                   // goroutines that make attempts
}

func newDeletes(c *core) *deletes {
	return &deletes{core: c, known: make(map[deletion]struct{})}
}

// add queues a deletion, once however often it is asked for.
func (d *deletes) add(x deletion) error {
	d.mu.Lock()
	if _, pending := d.known[x]; pending {
		d.mu.Unlock()
		return nil
	}
	if n := len(d.known); n >= MaxPendingDeletes {
		d.mu.Unlock()
		return fmt.Errorf("not to be deleted in the background either: %d deletions are pending already", n)
	}
	d.known[x] = struct{}{}
	d.mu.Unlock()
	d.enqueue(x)
	return nil
}

// enqueue has a pending deletion attempted. Once Close has begun nobody attempts it.
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

// dismiss takes note that a worker makes no attempts any more.
func (d *deletes) dismiss() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.workers--
}

// work makes attempts until the queue is empty, one of them has to be repeated, or the
// client is closed. Close waits for it.
func (d *deletes) work() {
	for {
		x, ok := d.next()
		if !ok {
			return
		}
		err := d.attempt(d.core.ctx, x)
		if unfinished(err) {
			d.repeat(x)
			return
		}
		d.finish(x, err)
	}
}

// repeat pauses and enqueues the deletion again. Meanwhile another worker takes the place
// of this one, unless there is no connection: then no other deletion would succeed.
func (d *deletes) repeat(x deletion) {
	if d.core.presentState() != Connected {
		d.pause()
		d.dismiss()
	} else {
		d.dismiss()
		d.employ()
		d.pause()
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

// pause returns after deletePause, or when there is a connection again, or at Close.
func (d *deletes) pause() {
	timer := time.NewTimer(deletePause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.core.nextConnection(retry.Failure{}):
	case <-d.core.ctx.Done():
	}
}

// attempt makes one attempt.
func (d *deletes) attempt(ctx context.Context, x deletion) error {
	if x.protected == nil {
		return d.core.delete(ctx, x, lookFirst, ErrNoNode)
	}
	for _, done := range x.protected.inFlight {
		select {
		case <-done: // else it could be created after the search
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
	}
	_, err := do(ctx, d.core, request{op: "delete", path: x.path, session: x.session, repeat: repeatable, single: true}, func(ctx context.Context, s *session) (struct{}, error) {
		for { // until there is none: two attempts may have had an effect each
			path, _, err := x.protected.search(ctx, s, x.path)
			if err != nil || path == "" {
				return struct{}{}, err
			}
			_, err = call(ctx, s, func(w *wire) (struct{}, error) { return struct{}{}, w.delete(path, AnyVersion) })
			if err != nil && !ctxerr.Is(err, ErrNoNode) {
				return struct{}{}, err
			}
		}
	})
	return err
}

// finish takes note of a deletion's end. Those that fail for good have nobody
// to be returned to, so they are logged.
func (d *deletes) finish(x deletion, err error) {
	if d.core.ctx.Err() != nil && ctxerr.Is(err, ErrClosed) {
		return // still pending, for Close to report
	}
	d.mu.Lock()
	delete(d.known, x)
	d.mu.Unlock()
	if x.protected != nil {
		x.protected.settled()
	}
	if err != nil && !ctxerr.Is(err, ErrNoNode) && !ctxerr.Is(err, ErrSessionEnded) {
		d.logGivenUp(x, err)
	}
}

func (d *deletes) logGivenUp(x deletion, err error) {
	d.core.log.Error("guaranteed delete given up", zap.String(AttrNodePath, x.path),
		zap.String(AttrErrorType, ErrorType(err)), zap.Error(err))
}

// undone returns the deletions that the client's end leaves undone. Those that
// end with the session are as good as done.
func (d *deletes) undone() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var faults []error
	for x := range d.known {
		if x.session == 0 {
			faults = append(faults, fmt.Errorf("guaranteed delete of %s not done", x.path))
		}
	}
	return opError("close", "", errors.Join(faults...))
}

// PendingDeletes returns how many guaranteed deletions (see [Guaranteed] and
// [Protected]) are still to be done.
func (c *Client) PendingDeletes() int { return c.core.deletes.pending() }

func (d *deletes) pending() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.known)
}
