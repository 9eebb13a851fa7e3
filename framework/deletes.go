package framework

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/internal/ctxerr"
)

// MaxPendingDeletes is how many guaranteed deletions a client keeps at a time:
// far more than one that works has, and few enough not to matter in memory.
const MaxPendingDeletes = 1 << 16

// deletePause is the pause between attempts at a deletion that the client's
// retry policy has given up.
const deletePause = 100 * time.Millisecond

// A deletion is a znode that is to go, whatever happens to the connection.
type deletion struct {
	session   int64  // the session that it ends with, 0 if it outlives sessions
	path      string // for a protected create, the path that was asked for
	version   int32
	czxid     int64       // of the znode that is meant, 0 for any: see [CreatedBy]
	protected *protection // set if it is not known whether, and as what, the znode exists
}

// deletes does the guaranteed deletions of a client, in the order in which they
// came. A connection that is away is waited for; one deletion that fails for
// good does not keep the others.
type deletes struct {
	core *core

	added chan struct{} // capacity 1

	mu     sync.Mutex // guards following
	queue  []deletion // the first is being done
	queued map[deletion]struct{}
}

func newDeletes(c *core) *deletes {
	return &deletes{core: c, added: make(chan struct{}, 1), queued: make(map[deletion]struct{})}
}

// add queues a deletion, once however often it is asked for.
func (d *deletes) add(x deletion) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.queued[x]; known {
		return nil
	}
	if len(d.queue) >= MaxPendingDeletes {
		return fmt.Errorf("not to be deleted in the background either: %d deletions are pending already", len(d.queue))
	}
	d.queue = append(d.queue, x)
	d.queued[x] = struct{}{}
	select {
	case d.added <- struct{}{}:
	default: // the loop has yet to look
	}
	return nil
}

// loop does deletions until the client is closed. NewClient starts it; Close
// waits for it.
func (d *deletes) loop() {
	for {
		select {
		case <-d.added:
		case <-d.core.ctx.Done():
			return
		}
		for x, ok := d.next(); ok; x, ok = d.next() {
			d.finish(x, d.run(x))
		}
	}
}

func (d *deletes) next() (deletion, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 || d.core.ctx.Err() != nil {
		return deletion{}, false
	}
	return d.queue[0], true
}

// run tries until the znode is gone, cannot be deleted, or its session is over.
func (d *deletes) run(x deletion) error {
	for {
		err := d.attempt(d.core.ctx, x)
		if !unfinished(err) {
			return err
		}
		timer := time.NewTimer(deletePause)
		select {
		case <-timer.C:
		case <-d.core.ctx.Done():
			timer.Stop()
			return err
		}
	}
}

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
	_, err := do(ctx, d.core, request{op: "delete", path: x.path, session: x.session, repeat: repeatable}, func(ctx context.Context, s *session) (struct{}, error) {
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
	if d.core.ctx.Err() != nil && (unfinished(err) || ctxerr.Is(err, ErrClosed)) {
		return // still in the queue, for Close to tell
	}
	d.mu.Lock()
	d.queue = d.queue[1:]
	delete(d.queued, x)
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
	for _, x := range d.queue {
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
	return len(d.queue)
}
