package cache

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
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

// A loop follows the changes of a cache. It belongs to one goroutine, which start starts and which
// ends with the cache's context; Close waits for it.
//
// One rule makes the cache complete: what was read counts only if the watch was valid from before the
// request until after the reply. Then every later change is among the source's changes, and marks its
// path to be read again.
type loop struct {
	cache   *Cache
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

func newLoop(c *Cache) *loop {
	over, cancel := context.WithCancel(context.Background()) // ended at once: drain does not wait
	cancel()
	return &loop{cache: c, refused: make(map[string]struct{}), over: over}
}

// run ends with the cache or the client.
func (l *loop) run(open treesource.Opener) {
	c := l.cache
	defer c.client.OnState(c.onState)()
	defer c.ends()
	for c.ctx.Err() == nil {
		err := l.follow(open)
		switch {
		case c.ctx.Err() != nil:
		case errors.Is(err, framework.ErrClosed):
			c.unseen()
			c.cancel(framework.ErrClosed)
		case errors.Is(err, framework.ErrUnsupported): // another server, which is older
			open = treesource.WatchEach
		default:
			_ = l.fail(err) // not ErrClosed
		}
	}
}

// follow follows one source until that fails.
func (l *loop) follow(open treesource.Opener) error {
	c := l.cache
	src, err := open(c.ctx, c.client, c.path)
	if err != nil {
		return err
	}
	defer src.Close()
	l.source = src
	c.mu.Lock()
	c.source = src
	c.mu.Unlock()
	l.begin()
	for {
		changes, err := l.next()
		if err != nil {
			return err
		}
		l.take(changes)
		l.admit(len(changes) == 0)
		if err := l.look(); err != nil {
			return err
		}
		l.settle()
	}
}

// begin begins to read everything.
func (l *loop) begin() {
	l.cache.unseen()
	l.marks.Clear()
	l.marks.Add(l.cache.path, readlist.WithAll)
	l.asks, l.lost, l.began = true, false, time.Now()
	for _, w := range l.waiters {
		w.until = l.marks.Last()
	}
}

// next returns the changes that are there. If there is nothing else to do, it waits for some, or
// for a call of Sync. It takes the calls of Sync first: if the source is valid then, what they are to
// see is among the changes.
func (l *loop) next() ([]framework.Change, error) {
	c := l.cache
	if c.ctx.Err() != nil {
		return nil, context.Cause(c.ctx)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.mu.Lock()
	l.callers, c.waiters = append(l.callers, c.waiters...), nil
	if !l.lost && (len(l.callers) > 0 || !l.marks.Empty()) {
		c.mu.Unlock()
		l.lost = len(l.callers) > 0 && l.marks.Empty() && !l.source.Valid()
		return l.drain(), nil
	}
	c.wake = cancel
	c.mu.Unlock()
	changes, err := l.source.Next(ctx)
	if ctx.Err() != nil {
		err = nil // the next call returns why, if c's context has ended
	}
	return changes, err
}

// drain returns the changes that are there, and waits for none. An error it leaves to next.
func (l *loop) drain() []framework.Change {
	changes, _ := l.source.Next(l.over)
	return changes
}

// take applies deletions, and marks what else has changed.
func (l *loop) take(changes []framework.Change) {
	c, e := l.cache, l.edit()
	for _, change := range changes {
		switch change.Kind {
		case framework.EventUnseen:
			e.publish(false)
			l.begin()
			e = l.edit()
		case framework.EventDeleted:
			l.marks.Revoke(change.Path)
			e.remove(change.Path)
			if change.Path == c.path {
				c.setFault(nil)
			}
		case framework.EventChildrenChanged:
			l.marks.Add(change.Path, readlist.WithNames)
		default:
			if c.extent.Has(change.Path) {
				l.marks.Add(change.Path, readlist.JustData)
			}
		}
	}
	e.publish(false)
}

// admit tells the calls of Sync for which mark they have to wait. quiet says that no change came
// after the replies that they had.
func (l *loop) admit(quiet bool) {
	switch {
	case len(l.callers) == 0 || l.lost:
		return
	case l.marks.Empty() && quiet:
		l.edit().publish(true)
	case l.marks.Empty():
		l.marks.Add(l.cache.path, readlist.JustData) // the reply settles the snapshot
	}
	for _, w := range l.callers {
		w.until = l.marks.Last()
	}
	l.waiters = append(l.waiters, l.callers...)
	l.callers = nil
}

// settle notifies those who wait for what has been read by now.
func (l *loop) settle() {
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
		l.cache.becomeReady(time.Since(l.began))
	}
}

// fail keeps err as the reason why the cache is not ready, and pauses. It returns err if the client
// is closed.
func (l *loop) fail(err error) error {
	if errors.Is(err, framework.ErrClosed) {
		return err
	}
	l.cache.trouble(err)
	l.cache.log.Debug("cannot fill the cache", l.cache.fields(zap.Error(err))...)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.cache.ctx.Done():
	}
	return nil
}
