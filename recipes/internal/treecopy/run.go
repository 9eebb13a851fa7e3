package treecopy

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/readlist"
	"github.com/docent-go/docent/recipes/internal/treesource"
)

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
		l.retryRefused()
		l.readmit()
		l.admit(len(changes) == 0)
		if err := l.look(ctx); err != nil {
			return err
		}
		l.readmit()
		l.settle()
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
	if l.unread.Len() > 0 && !l.lost {
		defer l.retryTimer(cancel).Stop()
	}
	changes, err := l.source.Next(ctx)
	if ctx.Err() != nil {
		err = nil // the next call returns why, if its context has ended
	}
	return changes, err
}

// Times between two attempts to read what the client may not read: no server notifies of a change of
// an ACL. Many such znodes are read at most a hundred times a second together.
const (
	refusedPause = 5 * time.Second
	perRefused   = 10 * time.Millisecond
)

// retryRefused marks what the client may not read when it is time to try again, or if a call of Sync
// is there, which has to see what the client may read by now.
func (l *Loop) retryRefused() {
	now := time.Now()
	due := len(l.callers) > 0 || !l.retryAt.IsZero() && !now.Before(l.retryAt)
	if l.lost || l.unread.Len() == 0 || !due {
		return
	}
	for path, r := range l.unread.From("") {
		if errors.Is(r.Err, framework.ErrNoAuth) {
			l.marks.Add(path, readlist.WithAll)
		}
	}
	l.retryAt = time.Time{}
}

// retryTimer ends a wait when it is time to try again.
func (l *Loop) retryTimer(end func()) *time.Timer {
	pause := max(refusedPause, time.Duration(l.unread.Len())*perRefused)
	if l.retryAt.IsZero() {
		l.retryAt = time.Now().Add(pause)
	}
	return time.AfterFunc(time.Until(l.retryAt), end)
}

// admit tells the calls of Sync for which mark they have to wait. quiet says that no change came
// after the replies that they had.
func (l *Loop) admit(quiet bool) {
	switch {
	case len(l.callers) == 0 || l.lost:
		return
	case l.marks.Empty() && quiet:
		l.edit().publish(true)
	case l.marks.Empty():
		l.marks.Add(l.opts.Extent.Root, readlist.JustData) // the reply settles the snapshot
	}
	for _, w := range l.callers {
		w.until = l.marks.Last()
	}
	l.waiters = append(l.waiters, l.callers...)
	l.callers = nil
}

// settle notifies those who wait for what has been read by now.
func (l *Loop) settle() {
	if l.asks {
		return
	}
	oldest := l.marks.Oldest()
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
		l.opts.Filled(time.Since(l.began))
	}
}
