package cache

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cachebounds"
)

// A loop follows the changes of a part of the tree, and keeps a copy of it. It belongs to the goroutine
// of run. Any goroutine may call sync and valid.
//
// One rule makes the copy complete: what was read counts only if the watch was valid from before the
// request until after the reply. Then every later change is among the source's changes, and marks its
// path to be read again.
type loop struct {
	opts        loopOptions
	desk        desk
	tree        pathTree[znode]   // the copy
	unread      pathTree[refusal] // what it leaves out
	source      *source
	marks       readList
	asks        bool                           // before it reads, it has to ask for what has been committed by now
	lost        bool                           // the source is not valid: its Next reports when it is
	began       time.Time                      // the fill
	fill        uint64                         // the latest mark that it has to wait for
	confirmed   map[string]struct{}            // what has been read since the fill began; nil if that is over
	batch       int                            // how many znodes are read at a time
	refused     map[string]struct{}            // what can't be read and was logged
	retryAt     time.Time                      // when that is tried again; zero for not
	shrunk      map[string]struct{}            // directories that could not be listed, and have lost children since
	rootRefused bool                           // the root can't be read: the copy is what it was before
	callers     []*waiter                      // calls of sync whose replies came before the latest changes
	waiters     []*waiter                      // those with until set
	over        context.Context                // has ended
	free        time.Time                      // when the rate allows the next batch
	leftOut     map[string]map[string]struct{} // names of what the limit leaves out, by directory
	numberOut   int                            // of names in leftOut
	moreOut     int                            // left out, and not in leftOut
}

// newLoop returns a loop that has yet to run.
func newLoop(opts loopOptions) *loop {
	over, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // ended at once: drain does not wait
	cancel()
	return &loop{opts: opts, refused: make(map[string]struct{}), shrunk: make(map[string]struct{}), leftOut: make(map[string]map[string]struct{}), over: over}
}

// A desk is what other goroutines and the loop have in common.
type desk struct {
	mu      sync.Mutex // guards following; never held across a request or a callback
	source  *source    // nil before there is one
	wake    func()     // wakes the loop if it waits; nil if it does not
	waiters []*waiter  // that the loop has yet to see
}

// A waiter is a call of sync.
type waiter struct {
	done  chan struct{} // closed by the loop when the copy has what was committed before the call
	until uint64        // the latest mark when the loop saw it
}

// sync returns a channel that is closed when the loop has read all that it has been notified of by now.
func (l *loop) sync() <-chan struct{} {
	w := &waiter{done: make(chan struct{})}
	l.desk.mu.Lock()
	defer l.desk.mu.Unlock()
	l.desk.waiters = append(l.desk.waiters, w)
	if l.desk.wake != nil {
		l.desk.wake()
	}
	return w.done
}

// valid reports whether the server notifies of every change by now.
func (l *loop) valid() bool {
	l.desk.mu.Lock()
	defer l.desk.mu.Unlock()
	return l.desk.source != nil && l.desk.source.Valid()
}

// isConfirmed reports whether the znode at path, which the copy has, was read since the fill began.
// Otherwise it may have been deleted and created again, and what is read below it would be removed
// with it.
func (l *loop) isConfirmed(path string) bool {
	if l.confirmed == nil {
		return true
	}
	_, ok := l.confirmed[path]
	return ok
}

func (l *loop) confirm(path string) {
	if l.confirmed != nil {
		l.confirmed[path] = struct{}{}
	}
}

// begin begins to read everything.
func (l *loop) begin() {
	l.opts.unseen()
	l.marks.clear()
	clear(l.leftOut)
	l.numberOut, l.moreOut = 0, 0
	l.marks.add(l.opts.extent.root, withAll)
	l.confirmed, l.batch = make(map[string]struct{}), minBatch
	l.asks, l.lost, l.rootRefused, l.began = true, false, false, time.Now()
	for _, w := range l.waiters {
		w.until = l.marks.last()
	}
}

// drain returns the pending changes without waiting. Errors are left to next.
func (l *loop) drain() []framework.Change {
	changes, _ := l.source.Next(l.over)
	return changes
}

// A znode is a znode as it was last read.
type znode struct {
	Path string
	Data []byte
	Stat framework.Stat
}

// A change is one change of a copy.
type change struct {
	old, new *znode // nil for none
}

// A refusal is a znode that can't be read, and why.
type refusal struct {
	path string
	err  error
}

// A treeCopy is what a loop has copied. It never changes.
type treeCopy struct {
	tree    pathTree[znode]
	unread  pathTree[refusal] // left out, with all below
	settled bool              // it is the tree at one instant
	leftOut int               // how many znodes the limit leaves out, without those below them
}

// loopOptions say what a loop copies, and whom it reports to. They are immutable. The functions are called
// by the goroutine of run.
type loopOptions struct {
	client *framework.Client
	extent extent
	log    *zap.Logger
	bounds cachebounds.Bounds

	// Publish reports the copy, and the changes that lead to it.
	publish func(now treeCopy, changes []change)
	unseen  func()                   // changes may have been missed; everything is read again
	filled  func(took time.Duration) // nothing that belongs to the fill is left to be read
	failed  func(error)              // an attempt to read has failed, and is repeated
	refused func(error)              // why the root can't be read; nil if it can be
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
				l.opts.refused(err)
			}
			_ = l.fail(ctx, err) // not ErrClosed
		}
	}
	return nil
}

// follow follows one source until that fails.
func (l *loop) follow(ctx context.Context) error {
	src, err := openSource(ctx, l.opts.client, l.opts.extent.root)
	if err != nil {
		return err
	}
	defer src.Close()
	l.source = src
	l.desk.mu.Lock()
	l.desk.source = src
	l.desk.mu.Unlock()
	l.begin()
	for {
		changes, err := l.next(ctx)
		if err != nil {
			return err
		}
		l.take(changes)
		l.retryRefused()
		l.readmit()
		l.admit(len(changes) == 0)
		if err := l.look(ctx); err != nil {
			return err
		}
		l.readmit()
		l.notifyWaiters()
	}
}

// next returns the changes that are there. If there is nothing else to do, it waits for some, or
// for a call of sync. It takes the calls of sync first: if the source is valid then, what they are to
// see is among the changes.
func (l *loop) next(ctx context.Context) ([]framework.Change, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.desk.mu.Lock()
	l.callers, l.desk.waiters = append(l.callers, l.desk.waiters...), nil
	if !l.lost && (len(l.callers) > 0 || !l.marks.empty()) {
		l.desk.mu.Unlock()
		l.lost = len(l.callers) > 0 && l.marks.empty() && !l.source.Valid()
		return l.drain(), nil
	}
	l.desk.wake = cancel
	l.desk.mu.Unlock()
	if l.unread.len() > 0 && !l.lost {
		defer l.retryTimer(cancel).Stop()
	}
	changes, err := l.source.Next(ctx)
	if ctx.Err() != nil {
		err = nil // the next call returns why, if its context has ended
	}
	return changes, err
}

// Times between two attempts to read what the client may not read: no server notifies of a change of
// an ACL. The same goes for a directory whose listing is too large, once it has lost children. Many such znodes are read at most a hundred times a second together.
const (
	refusedPause = 5 * time.Second
	perRefused   = 10 * time.Millisecond
)

// retryRefused marks what the client may not read when it is time to try again, or if a call of sync
// is there, which has to see what the client may read by now.
func (l *loop) retryRefused() {
	now := time.Now()
	due := len(l.callers) > 0 || !l.retryAt.IsZero() && !now.Before(l.retryAt)
	if l.lost || l.unread.len() == 0 || !due {
		return
	}
	for path, r := range l.unread.from("") {
		if _, shrunk := l.shrunk[path]; shrunk || errors.Is(r.err, framework.ErrNoAuth) {
			l.marks.add(path, withAll)
		}
	}
	clear(l.shrunk)
	l.retryAt = time.Time{}
}

// retryTimer ends a wait when it is time to try again.
func (l *loop) retryTimer(end func()) *time.Timer {
	pause := max(refusedPause, time.Duration(l.unread.len())*perRefused)
	if l.retryAt.IsZero() {
		l.retryAt = time.Now().Add(pause)
	}
	return time.AfterFunc(time.Until(l.retryAt), end)
}

// admit assigns each pending call of sync the mark it waits for. quiet says that no change came after
// the replies to these calls.
func (l *loop) admit(quiet bool) {
	switch {
	case len(l.callers) == 0 || l.lost:
		return
	case l.marks.empty() && quiet:
		l.edit().publish(true)
	case l.marks.empty():
		l.marks.add(l.opts.extent.root, justData) // the reply settles the snapshot
	}
	for _, w := range l.callers {
		w.until = l.marks.last()
	}
	l.waiters = append(l.waiters, l.callers...)
	l.callers = nil
}

// notifyWaiters notifies those who wait for what has been read by now.
func (l *loop) notifyWaiters() {
	if l.asks {
		return
	}
	oldest := l.marks.oldest()
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
		if !l.rootRefused { // else the copy is older than the fill
			l.confirmed = nil
		}
		l.opts.filled(time.Since(l.began))
	}
}
