package framework

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/retry"
)

// maxPendingDeletes is how many guaranteed deletions a client keeps at a time. A working client has
// far fewer. Each needs some hundred bytes and no goroutine, so all of them need some tens of megabytes. Beyond it
// the client keeps only deletions whose end is awaited, by a function ([WhenOver]) or by the next create at the
// path ([KnownBySession]). If a deletion is dropped, its znode could still exist.
const maxPendingDeletes = 1 << 16

// A deletion is a znode that the client deletes whatever happens to the connection.
type deletion struct {
	session   int64  // the session that it ends with, 0 if it outlives sessions
	path      string // for a protected create, the given path
	version   int32
	czxid     int64 // of the znode, 0 for any: CreatedBy
	epoch     int32 // if atEpoch is set: AtEpoch
	atEpoch   bool
	protected *protection // set if it is unknown whether, and under which name, the znode exists
	over      *overHook   // may be nil
}

// awaited reports whether the deletion's end is awaited. The waiter creates no other znode at the
// path until then, so there are no more of these deletions than such paths.
func (x deletion) awaited() bool {
	return x.over != nil || x.protected != nil && x.protected.claim != nil
}

// deletes does the guaranteed deletions of a client, several at once and in no fixed
// order. A deletion that pauses or waits for a connection does not delay the others.
type deletes struct {
	core   *core
	sooner chan struct{} // capacity 1: the queue's first may be due earlier than who waits for it knows

	mu      sync.Mutex // guards following
	closed  bool
	known   map[deletion]*pendingDelete // the pending deletions
	queue   []*pendingDelete            // those that no worker has taken, by the times at which they are due
	up      <-chan struct{}             // closed at the connection at which all of the queue are due
	workers int                         // goroutines
	waiting bool                        // one of them waits until the queue's first is due
}

// A pendingDelete is a deletion that is to be done.
type pendingDelete struct {
	deletion
	earlier earlierAttempts // what attempts have left; as refused, for the worker that has taken it
	refused bool            // a refusal was logged
	due     time.Time       // when the next attempt is; guarded by deletes.mu
}

func newDeletes(c *core) *deletes {
	return &deletes{core: c, sooner: make(chan struct{}, 1), known: make(map[deletion]*pendingDelete)}
}

// add queues a deletion once, however often it is requested. before is what earlier
// attempts have left.
func (d *deletes) add(x deletion, before earlierAttempts) error {
	d.mu.Lock()
	if _, pending := d.known[x]; pending {
		d.mu.Unlock()
		return nil
	}
	if d.closed {
		d.mu.Unlock()
		x.over.notify(false)
		x.protected.finish()
		return nil
	}
	if n := len(d.known); n >= maxPendingDeletes && !x.awaited() {
		d.mu.Unlock()
		return fmt.Errorf("not to be deleted in the background either: %d deletions are pending already", n)
	}
	p := &pendingDelete{deletion: x, earlier: before}
	d.known[x] = p
	d.mu.Unlock()
	d.enqueue(p, 0)
	d.employ()
	return nil
}

// attempt makes one attempt.
func (d *deletes) attempt(ctx context.Context, p *pendingDelete) error {
	if p.protected != nil {
		return p.attemptProtected(ctx, d.core, p.earlier.before)
	}
	return d.core.delete(ctx, p.deletion, true, &p.earlier, ErrNoNode)
}

// finish records a deletion's end. It logs a final failure, because there is no caller to return it
// to.
func (d *deletes) finish(x deletion, err error) {
	if d.core.ctx.Err() != nil && errors.Is(err, ErrClosed) {
		return // still pending, so that Close reports it
	}
	d.mu.Lock()
	if d.closed { // close does not wait forever for a worker, and has ended what was left
		d.mu.Unlock()
		return
	}
	delete(d.known, x)
	d.mu.Unlock()
	x.protected.finish()
	x.over.notifyLater(d.core.log, err == nil || errors.Is(err, ErrNoNode))
	if err != nil && !zkerr.IsAny(err, ErrNoNode, ErrSessionEnded) {
		d.logAbandoned(x, err)
	}
}

func (d *deletes) logAbandoned(x deletion, err error) {
	d.core.log.Error("guaranteed delete given up", zap.String(zktel.AttrNodePath, x.path),
		zap.String(zktel.AttrErrorType, errtype.Of(err)), zap.Error(err))
}

// close ends the deletions with the client, and returns those that are unfinished. A deletion that
// ends with the session is not reported. Its caller has waited for the workers.
func (d *deletes) close() error {
	d.mu.Lock()
	d.closed = true
	left := slices.Collect(maps.Keys(d.known))
	d.mu.Unlock()
	var faults []error
	for _, x := range left {
		x.over.notifyLater(d.core.log, false)
		x.protected.finish()
		if x.session == 0 {
			faults = append(faults, fmt.Errorf("guaranteed delete of %s not done", errtype.Path(x.path)))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &OpError{Op: "close", Err: errors.Join(faults...)}
}

// PendingDeletes returns how many guaranteed deletions (see [Guaranteed] and
// [Protected]) are still to be done. The client keeps at most 65,536, those apart that a caller
// awaits.
func (c *Client) PendingDeletes() int { return c.core.deletes.pending() }

func (d *deletes) pending() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.known)
}

// maxDeletesInFlight is how many of a client's guaranteed deletions are under way at once.
const maxDeletesInFlight = 32

// Pauses between attempts at a deletion. A new connection ends a pause.
const (
	deletePause  = 100 * time.Millisecond
	refusalPause = 2 * time.Second // after a server's refusal
)

// enqueue makes a deletion due after a pause.
func (d *deletes) enqueue(p *pendingDelete, pause time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p.due = time.Now().Add(pause)
	i, _ := slices.BinarySearchFunc(d.queue, p.due, func(q *pendingDelete, due time.Time) int {
		return cmp.Or(q.due.Compare(due), -1) // behind those of the same time
	})
	d.queue = slices.Insert(d.queue, i, p)
	if i == 0 {
		select {
		case d.sooner <- struct{}{}:
		default:
		}
	}
}

// employ starts a worker for the queue, unless there are enough or one waits for it.
func (d *deletes) employ() {
	d.mu.Lock()
	wanted := len(d.queue) > 0 && !d.waiting && d.workers < maxDeletesInFlight
	if wanted {
		d.workers++
	}
	d.mu.Unlock()
	if wanted && !d.core.spawn(d.work) { // Close has begun: no worker takes it
		d.mu.Lock()
		defer d.mu.Unlock()
		d.workers--
	}
}

// work makes attempts as long as it gets deletions; Close waits for it.
func (d *deletes) work() {
	for p := d.next(); p != nil; p = d.next() {
		if err := d.attempt(d.core.ctx, p); p.unfinished(err) {
			d.repeat(p, err)
		} else {
			d.finish(p.deletion, err)
		}
	}
}

// next takes the queue's first deletion once it is due, all of them at a new connection. One worker at a time waits for
// that. Another, or one for which there is nothing, is dismissed, as all are at Close: next returns nil.
func (d *deletes) next() *pendingDelete {
	for {
		up := d.core.nextConnection(retry.Failure{})
		d.mu.Lock()
		now := time.Now()
		if up != d.up {
			d.up = up
			for _, p := range d.queue {
				p.due = now
			}
		}
		switch {
		case len(d.queue) == 0, d.core.ctx.Err() != nil, d.waiting && d.queue[0].due.After(now):
			d.workers--
			d.mu.Unlock()
			return nil
		case !d.queue[0].due.After(now):
			p := d.queue[0]
			d.queue[0], d.queue = nil, d.queue[1:]
			d.mu.Unlock()
			d.employ() // for the next one
			return p
		}
		d.waiting = true
		wait := d.queue[0].due.Sub(now)
		d.mu.Unlock()
		d.await(wait, up, d.sooner)
		d.mu.Lock()
		d.waiting = false
		d.mu.Unlock()
	}
}

// await waits for a time, or for one of the channels, or for Close.
func (d *deletes) await(limit time.Duration, up, sooner <-chan struct{}) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-up:
	case <-sooner:
	case <-d.core.ctx.Done():
	}
}

// repeat makes the deletion, which failed with err, pause. If there is no connection, no other deletion would succeed, and
// the worker pauses, too. It logs the first refusal of a deletion: contenders may wait for its znode until the session ends.
func (d *deletes) repeat(p *pendingDelete, err error) {
	pause := deletePause
	switch {
	case errors.Is(err, ErrReadOnly):
		pause = refusalPause
	case !noAnswer(err):
		pause = refusalPause
		if !p.refused {
			d.core.log.Error("guaranteed delete refused, and repeated until its session ends",
				zap.String(zktel.AttrNodePath, p.path), zap.String(zktel.AttrErrorType, errtype.Of(err)), zap.Error(err))
		}
		p.refused = true
	}
	d.enqueue(p, pause)
	up := d.core.nextConnection(retry.Failure{})
	if d.core.presentState() != Connected {
		d.await(deletePause, up, nil)
	}
}
