package framework

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

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
	sooner chan struct{} // has a value if resume waits for too late a time

	mu       sync.Mutex // guards following
	closed   bool
	known    map[deletion]*pendingDelete // the pending deletions
	queue    []deletion                  // those that no worker attempts and that do not pause
	paused   pauses                      // the deletions that pause
	resuming bool                        // resume runs: whenever a deletion pauses
	workers  int                         // goroutines that make attempts
}

// A pendingDelete is the state that attempts at a deletion have left.
type pendingDelete struct {
	earlier earlierAttempts // used only by the worker that makes an attempt, one at a time
	refused bool            // a refusal was logged; guarded by deletes.mu
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
	d.known[x] = &pendingDelete{earlier: before}
	d.mu.Unlock()
	d.enqueue(x)
	return nil
}

// attempt makes one attempt.
func (d *deletes) attempt(ctx context.Context, x deletion) error {
	earlier := d.earlierOf(x)
	if x.protected != nil {
		return x.attemptProtected(ctx, d.core, earlier.before)
	}
	return d.core.delete(ctx, x, oneAttempt, earlier, ErrNoNode)
}

// earlierOf returns what earlier attempts at a pending deletion have left.
func (d *deletes) earlierOf(x deletion) *earlierAttempts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &d.known[x].earlier
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
	if err != nil && !errors.Is(err, ErrNoNode) && !errors.Is(err, ErrSessionEnded) {
		d.logAbandoned(x, err)
	}
}

// logRefusal logs the first refusal of a deletion: contenders may wait for its znode until
// the session ends.
func (d *deletes) logRefusal(x deletion, err error) {
	d.mu.Lock()
	logged := d.known[x].refused
	d.known[x].refused = true
	d.mu.Unlock()
	if !logged {
		d.core.log.Error("guaranteed delete refused, and repeated until its session ends",
			zap.String(zktel.AttrNodePath, x.path), zap.String(zktel.AttrErrorType, errtype.Of(err)), zap.Error(err))
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

// work makes attempts until the queue is empty, or the client is closed; Close waits for it. If a
// deletion has to be repeated and there is no connection, no other deletion would succeed, and work
// returns.
func (d *deletes) work() {
	for {
		x, ok := d.next()
		if !ok {
			return
		}
		err := d.attempt(d.core.ctx, x)
		if !x.unfinished(err) {
			d.finish(x, err)
			continue
		}
		d.repeat(x, err)
		if d.core.presentState() != Connected { // resume employs others for the queue
			d.dismiss()
			return
		}
	}
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

// repeat makes the deletion, which failed with err, pause.
func (d *deletes) repeat(x deletion, err error) {
	pause := deletePause
	switch {
	case errors.Is(err, ErrReadOnly):
		pause = refusalPause
	case !noAnswer(err):
		pause = refusalPause
		d.logRefusal(x, err)
	}
	d.mu.Lock()
	heap.Push(&d.paused, pausedDelete{x, time.Now().Add(pause)})
	idle, first := !d.resuming, d.paused[0].deletion == x
	d.resuming = true
	d.mu.Unlock()
	switch {
	case idle:
		d.core.spawn(d.resume)
	case first:
		select {
		case d.sooner <- struct{}{}:
		default:
		}
	}
}

// resume ends the pauses of deletions: at their times, all of them at a new connection, and at Close,
// which waits for it. It returns when no deletion pauses and a worker looks at the queue.
func (d *deletes) resume() {
	up := d.core.nextConnection(retry.Failure{})
	for all := false; ; {
		wait, more := d.enqueueDue(all)
		if !more {
			return
		}
		all = false
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-d.sooner:
		case <-up:
			up, all = d.core.nextConnection(retry.Failure{}), true
		case <-d.core.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// enqueueDue enqueues the deletions whose pause is over, or all. If there is no connection, it leaves
// most of them for later calls, because no attempt would succeed. It employs workers for the queue, and
// returns the time until the next call, if there has to be one.
func (d *deletes) enqueueDue(all bool) (wait time.Duration, more bool) {
	most, atLeast := math.MaxInt, time.Duration(0)
	if d.core.presentState() != Connected {
		most, atLeast = maxDeletesInFlight, deletePause
	}
	now, due := time.Now(), 0
	d.mu.Lock()
	for ; len(d.paused) > 0 && due < most && (all || !d.paused[0].due.After(now)); due++ {
		d.queue = append(d.queue, heap.Pop(&d.paused).(pausedDelete).deletion)
	}
	ready := len(d.queue)
	switch {
	case ready > 0 && d.workers == maxDeletesInFlight:
		wait, more = deletePause, true // none can be employed, and all may be about to leave
	case len(d.paused) > 0:
		wait, more = max(d.paused[0].due.Sub(now), atLeast), true
	}
	d.resuming = more
	d.mu.Unlock()
	for range min(ready, maxDeletesInFlight) {
		d.employ()
	}
	return wait, more
}

// A pausedDelete is a deletion whose next attempt is due at a time.
type pausedDelete struct {
	deletion deletion
	due      time.Time
}

// pauses are a heap by the times.
type pauses []pausedDelete

func (p pauses) Len() int           { return len(p) }
func (p pauses) Less(i, j int) bool { return p[i].due.Before(p[j].due) }
func (p pauses) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *pauses) Push(x any)        { *p = append(*p, x.(pausedDelete)) }

func (p *pauses) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	(*p)[last] = pausedDelete{}
	*p = (*p)[:last]
	return x
}
