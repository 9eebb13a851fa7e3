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
		l.admit(len(changes) == 0)
		if err := l.look(ctx); err != nil {
			return err
		}
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
	changes, err := l.source.Next(ctx)
	if ctx.Err() != nil {
		err = nil // the next call returns why, if its context has ended
	}
	return changes, err
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
	if l.asks || l.marks.Deep() {
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
		l.opts.Filled(time.Since(l.began))
	}
}
