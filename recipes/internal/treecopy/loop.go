package treecopy

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/pathtree"
	"github.com/docent-go/docent/recipes/internal/readlist"
	"github.com/docent-go/docent/recipes/internal/treesource"
)

const (
	// maxBatch is how many znodes are read at a time. A heartbeat of the session queues behind
	// them, so it is small compared with what a server reads within the shortest session timeout.
	maxBatch = 1000
	// pause is the time between a failure and the next attempt.
	pause = 500 * time.Millisecond
)

// A Loop follows the changes of a part of the tree, and keeps a copy of it. It belongs to the goroutine
// of Run. Any goroutine may call Sync and Valid.
//
// One rule makes the copy complete: what was read counts only if the watch was valid from before the
// request until after the reply. Then every later change is among the source's changes, and marks its
// path to be read again.
type Loop struct {
	opts    Options
	desk    desk
	tree    pathtree.Tree[Znode] // the copy
	source  treesource.Source
	marks   readlist.List
	asks    bool                // before it reads, it has to ask for what has been committed by now
	lost    bool                // the source is not valid: Next will tell when it is
	began   time.Time           // the fill
	fill    uint64              // the latest mark that it has to wait for
	refused map[string]struct{} // what can't be read and was logged
	callers []*waiter           // calls of Sync whose replies came before the latest changes
	waiters []*waiter           // those with until set
	over    context.Context     // has ended
}

// New returns a Loop that has yet to run.
func New(opts Options) *Loop {
	over, cancel := context.WithCancel(context.Background()) // ended at once: drain does not wait
	cancel()
	return &Loop{opts: opts, refused: make(map[string]struct{}), over: over}
}

// Run fills the copy and follows the changes until ctx ends. Its first source open makes. It returns
// framework.ErrClosed if the client is closed before.
func (l *Loop) Run(ctx context.Context, open treesource.Opener) error {
	for ctx.Err() == nil {
		err := l.follow(ctx, open)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, framework.ErrClosed):
			return framework.ErrClosed
		case errors.Is(err, framework.ErrUnsupported): // another server, which is older
			open = treesource.WatchEach
		default:
			_ = l.fail(ctx, err) // not ErrClosed
		}
	}
	return nil
}

// follow follows one source until that fails.
func (l *Loop) follow(ctx context.Context, open treesource.Opener) error {
	src, err := open(ctx, l.opts.Client, l.opts.Extent.Root)
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
		l.admit(len(changes) == 0)
		if err := l.look(ctx); err != nil {
			return err
		}
		l.settle()
	}
}

// begin begins to read everything.
func (l *Loop) begin() {
	l.opts.Unseen()
	l.marks.Clear()
	l.marks.Add(l.opts.Extent.Root, readlist.WithAll)
	l.asks, l.lost, l.began = true, false, time.Now()
	for _, w := range l.waiters {
		w.until = l.marks.Last()
	}
}

// next returns the changes that are there. If there is nothing else to do, it waits for some, or
// for a call of Sync. It takes the calls of Sync first: if the source is valid then, what they are to
// see is among the changes.
func (l *Loop) next(ctx context.Context) ([]framework.Change, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.desk.mu.Lock()
	l.callers, l.desk.waiters = append(l.callers, l.desk.waiters...), nil
	if !l.lost && (len(l.callers) > 0 || !l.marks.Empty()) {
		l.desk.mu.Unlock()
		l.lost = len(l.callers) > 0 && l.marks.Empty() && !l.source.Valid()
		return l.drain(), nil
	}
	l.desk.wake = cancel
	l.desk.mu.Unlock()
	changes, err := l.source.Next(ctx)
	if ctx.Err() != nil {
		err = nil // the next call returns why, if its context has ended
	}
	return changes, err
}

// drain returns the changes that are there, and waits for none. An error it leaves to next.
func (l *Loop) drain() []framework.Change {
	changes, _ := l.source.Next(l.over)
	return changes
}

// take applies deletions, and marks what else has changed.
func (l *Loop) take(changes []framework.Change) {
	e := l.edit()
	for _, change := range changes {
		switch change.Kind {
		case framework.EventUnseen:
			e.publish(false)
			l.begin()
			e = l.edit()
		case framework.EventDeleted:
			l.marks.Revoke(change.Path)
			e.remove(change.Path)
			if change.Path == l.opts.Extent.Root {
				l.opts.Refused(nil)
			}
		case framework.EventChildrenChanged:
			l.marks.Add(change.Path, readlist.WithNames)
		default:
			if l.opts.Extent.Has(change.Path) {
				l.marks.Add(change.Path, readlist.JustData)
			}
		}
	}
	e.publish(false)
}

// fail reports err, and pauses. It returns err if the client
// is closed.
func (l *Loop) fail(ctx context.Context, err error) error {
	if errors.Is(err, framework.ErrClosed) {
		return err
	}
	l.opts.Failed(err)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}
