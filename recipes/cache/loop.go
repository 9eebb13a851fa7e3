package cache

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cachebounds"
)

// A loop follows the changes of a part of the tree, and keeps a copy of it. It belongs to the goroutine
// of run. Any goroutine may call sync and valid.
//
// One rule makes the copy complete: what was read counts only if the watch was valid from before the
// request until after the reply. Then every later change is among the watch's changes, and marks its
// path to be read again.
type loop struct {
	cache       *Cache // that it reports to
	extent      extent
	bounds      cachebounds.Bounds
	shared      sharedState
	tree        pathTree[Node] // the copy
	unread      unread         // what it leaves out
	watch       *framework.TreeWatch
	marks       readList
	invalid     bool // the watch is not valid: its Next reports when it is
	fill        fill
	out         leftOut
	syncs       syncs
	ended       context.Context // so that drain does not wait
	nextBatchAt time.Time       // when the rate allows the next batch
}

// A fill reads everything.
type fill struct {
	mustSync  bool // before it reads, it has to ask for what has been committed by now
	began     time.Time
	until     uint64              // the latest mark that it has to wait for
	confirmed map[string]struct{} // what has been read since it began; nil if it is over
	batch     int                 // how many znodes are read at a time
}

// An unread is what can't be read.
type unread struct {
	znodes  pathTree[refusal]
	root    bool                // the root can't be read: the copy is what it was before
	logged  map[string]struct{} // what has been logged
	retryAt time.Time           // when all is tried again; zero for not
	shrunk  map[string]struct{} // directories that could not be listed, and have lost children since
}

// A leftOut is what the limit leaves out.
type leftOut struct {
	names map[string]map[string]struct{} // by directory
	known int                            // how many names
	more  int                            // left out, and not in names
}

// A syncs has the calls of sync.
type syncs struct {
	callers []*waiter // those whose replies came before the latest changes
	waiters []*waiter // those with until set
}

// newLoop returns a loop that has yet to run.
func newLoop(c *Cache, of extent, bounds cachebounds.Bounds) *loop {
	ended, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // it ends at once
	cancel()
	return &loop{
		cache: c, extent: of, bounds: bounds, ended: ended,
		unread: unread{logged: make(map[string]struct{}), shrunk: make(map[string]struct{})},
		out:    leftOut{names: make(map[string]map[string]struct{})},
	}
}

// A sharedState is what other goroutines and the loop have in common.
type sharedState struct {
	mu      sync.Mutex           // guards following; never held across a request or a callback
	watch   *framework.TreeWatch // nil before there is one; any goroutine may call its Valid
	wake    func()               // wakes the loop if it waits; nil if it does not
	waiters []*waiter            // that the loop has yet to see
}

// A waiter is a call of sync.
type waiter struct {
	done  chan struct{} // closed by the loop when the copy has what was committed before the call
	until uint64        // the latest mark when the loop saw it
}

// sync returns a channel that is closed when the loop has read all that it has been notified of by now.
func (l *loop) sync() <-chan struct{} {
	w := &waiter{done: make(chan struct{})}
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	l.shared.waiters = append(l.shared.waiters, w)
	if l.shared.wake != nil {
		l.shared.wake()
	}
	return w.done
}

// valid reports whether the server notifies of every change by now.
func (l *loop) valid() bool {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	return l.shared.watch != nil && l.shared.watch.Valid()
}

// isConfirmed reports whether the znode at path, which the copy has, was read since the fill began.
// Otherwise it may have been deleted and created again, and what is read below it would be removed
// with it.
func (f *fill) isConfirmed(path string) bool {
	if f.confirmed == nil {
		return true
	}
	_, ok := f.confirmed[path]
	return ok
}

func (f *fill) confirm(path string) {
	if f.confirmed != nil {
		f.confirmed[path] = struct{}{}
	}
}

// begin begins to read everything.
func (l *loop) begin() {
	l.cache.unseen()
	l.marks.clear()
	l.out = leftOut{names: make(map[string]map[string]struct{})}
	l.marks.add(l.extent.root, withAll)
	l.fill = fill{mustSync: true, began: time.Now(), until: l.fill.until, confirmed: make(map[string]struct{}), batch: minBatch}
	l.invalid, l.unread.root = false, false
	for _, w := range l.syncs.waiters {
		w.until = l.marks.last()
	}
}

// drain returns the pending changes without waiting. Errors are left to next.
func (l *loop) drain() []framework.Change {
	changes, _ := l.watch.Next(l.ended)
	return changes
}

// run fills the copy and follows the changes until ctx ends. It returns
// framework.ErrClosed if the client is closed before.
func (l *loop) run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := l.follow(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, framework.ErrClosed):
			return framework.ErrClosed
		default:
			if errors.Is(err, framework.ErrUnsupported) { // the next server may know the operation
				l.cache.setFault(err)
			}
			_ = l.fail(ctx, err) // not ErrClosed
		}
	}
	return nil
}

// follow follows the changes by one watch until that fails.
func (l *loop) follow(ctx context.Context) error {
	watch, err := l.cache.client.WatchTree(ctx, l.extent.root)
	if err != nil {
		return err
	}
	defer watch.Close()
	l.watch = watch
	l.shared.mu.Lock()
	l.shared.watch = watch
	l.shared.mu.Unlock()
	l.begin()
	for {
		changes, err := l.next(ctx)
		if err != nil {
			return err
		}
		l.take(changes)
		l.retryRefused()
		l.markLeftOut()
		l.assignMarks(len(changes) == 0)
		if err := l.readOldest(ctx); err != nil {
			return err
		}
		l.markLeftOut()
		l.notifyWaiters()
	}
}

// next returns the changes that are there. If there is nothing else to do, it waits for some, or
// for a call of sync. It takes the calls of sync first: if the watch is valid then, what they are to
// see is among the changes.
func (l *loop) next(ctx context.Context) ([]framework.Change, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.shared.mu.Lock()
	l.syncs.callers, l.shared.waiters = append(l.syncs.callers, l.shared.waiters...), nil
	if !l.invalid && (len(l.syncs.callers) > 0 || !l.marks.empty()) {
		l.shared.mu.Unlock()
		l.invalid = len(l.syncs.callers) > 0 && l.marks.empty() && !l.watch.Valid()
		return l.drain(), nil
	}
	l.shared.wake = cancel
	l.shared.mu.Unlock()
	if l.unread.znodes.len() > 0 && !l.invalid {
		defer l.retryTimer(cancel).Stop()
	}
	changes, err := l.watch.Next(ctx)
	if ctx.Err() != nil {
		err = nil // the next call returns why, if its context has ended
	}
	return changes, err
}

// Times between two attempts to read what the client may not read: no server notifies of a change of
// an ACL. The same goes for a directory whose listing is too large, once it has lost children. Many such znodes
// are read at most a hundred times a second together.
const (
	refusedPause = 5 * time.Second
	perRefused   = 10 * time.Millisecond
)

// retryRefused marks what the client may not read when it is time to try again, or if a call of sync
// is there, which has to see what the client may read by now.
func (l *loop) retryRefused() {
	now := time.Now()
	due := len(l.syncs.callers) > 0 || !l.unread.retryAt.IsZero() && !now.Before(l.unread.retryAt)
	if l.invalid || l.unread.znodes.len() == 0 || !due {
		return
	}
	for path, r := range l.unread.znodes.from("") {
		if _, shrunk := l.unread.shrunk[path]; shrunk || errors.Is(r.err, framework.ErrNoAuth) {
			l.marks.add(path, withAll)
		}
	}
	clear(l.unread.shrunk)
	l.unread.retryAt = time.Time{}
}

// retryTimer ends a wait when it is time to try again.
func (l *loop) retryTimer(end func()) *time.Timer {
	pause := max(refusedPause, time.Duration(l.unread.znodes.len())*perRefused)
	if l.unread.retryAt.IsZero() {
		l.unread.retryAt = time.Now().Add(pause)
	}
	return time.AfterFunc(time.Until(l.unread.retryAt), end)
}

// assignMarks assigns each pending call of sync the mark it waits for. quiet says that no change came after
// the replies to these calls.
func (l *loop) assignMarks(quiet bool) {
	switch {
	case len(l.syncs.callers) == 0 || l.invalid:
		return
	case l.marks.empty() && quiet:
		l.edit().publish(true)
	case l.marks.empty():
		l.marks.add(l.extent.root, justData) // the reply settles the snapshot
	}
	l.syncs.assign(l.marks.last())
}

// assign makes the calls wait until the mark has been read.
func (s *syncs) assign(until uint64) {
	for _, w := range s.callers {
		w.until = until
	}
	s.waiters = append(s.waiters, s.callers...)
	s.callers = nil
}

// notify ends the calls that wait for nothing from the mark on.
func (s *syncs) notify(oldest uint64) {
	s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool {
		if w.until < oldest {
			close(w.done)
			return true
		}
		return false
	})
}

// notifyWaiters notifies those who wait for what has been read by now.
func (l *loop) notifyWaiters() {
	if l.fill.mustSync {
		return
	}
	oldest := l.marks.oldest()
	l.syncs.notify(oldest)
	if l.fill.until < oldest {
		if !l.unread.root { // else the copy is older than the fill
			l.fill.confirmed = nil
		}
		l.cache.becomeReady(time.Since(l.fill.began))
	}
}
