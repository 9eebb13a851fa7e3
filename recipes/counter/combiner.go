package counter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
)

// A combiner makes the changes of one client to one counter. Changes that are asked for while a
// write is under way are the next batch: one write makes all of them, in order.
type combiner struct {
	cell   cell
	number number

	mu      sync.Mutex // guards following; never held across a request
	waiting []*call    // the next batch
	running bool       // run is at work

	known *state // the latest state that is known, nil for none; only run uses it
}

// A combinerKey is what the calls that are combined have in common.
type combinerKey struct {
	path  string // in the ensemble
	int32 bool
}

// A change returns the number after a change, and whether the change writes.
type change func(v int64) (after int64, writes bool, err error)

// A call is one change that was asked for.
type call struct {
	change change
	ctx    context.Context // for its values
	batch  *batch          // guarded by combiner.mu; nil while it waits
	done   chan struct{}   // closed with the following set

	after  int64
	writes bool
	err    error
}

// A batch is the calls that one write makes.
type batch struct {
	ctx    context.Context // ends when no caller waits any more
	cancel context.CancelFunc
	calls  []*call
	left   int // callers that wait for it; guarded by combiner.mu
}

// do makes the change, and returns the call with its result. If the batch's outcome is known when
// ctx ends, do returns that outcome.
func (c *combiner) do(ctx context.Context, fn change) (*call, error) {
	one := &call{change: fn, ctx: context.WithoutCancel(cause.Inside(ctx)), done: make(chan struct{})}
	if ctx.Err() != nil {
		return one, ctx.Err()
	}
	c.mu.Lock()
	c.waiting = append(c.waiting, one)
	if !c.running {
		c.running = true
		go c.run(c.nextLocked()) // callers wait for each of its batches: see finish
	}
	c.mu.Unlock()
	select {
	case <-one.done:
		return one, one.err
	case <-ctx.Done():
		return one, c.leave(ctx, one)
	}
}

// leave takes a call back whose ctx has ended. If it is the last of its batch, leave ends the batch
// and waits for that.
func (c *combiner) leave(ctx context.Context, one *call) error {
	c.mu.Lock()
	if one.batch == nil {
		c.waiting = slices.DeleteFunc(c.waiting, func(other *call) bool { return other == one })
		c.mu.Unlock()
		return ctx.Err()
	}
	one.batch.left--
	last := one.batch.left == 0
	c.mu.Unlock()
	if last {
		one.batch.cancel()
		<-one.done
	}
	select {
	case <-one.done:
		if one.err == nil || !errors.Is(one.err, framework.ErrUnknownOutcome) && !errors.Is(one.err, context.Canceled) {
			return one.err
		}
		if !errors.Is(one.err, framework.ErrUnknownOutcome) {
			return ctx.Err()
		}
	default:
	}
	return fmt.Errorf("%w: %w", ctx.Err(), framework.ErrUnknownOutcome)
}

// nextLocked returns the batch of the waiting calls, or nil if there is none.
func (c *combiner) nextLocked() *batch {
	if len(c.waiting) == 0 {
		return nil
	}
	b := &batch{calls: c.waiting, left: len(c.waiting)}
	b.ctx, b.cancel = context.WithCancel(c.waiting[0].ctx)
	for _, one := range b.calls {
		one.batch = b
	}
	c.waiting = nil
	return b
}

// run makes one batch after another. A call starts it. It ends when no call waits.
func (c *combiner) run(b *batch) {
	for b != nil {
		if err := c.apply(b); err != nil {
			for _, one := range b.calls {
				one.err = err
			}
			c.known = nil
		}
		b = c.finish(b)
	}
}

// finish publishes the results of a batch, and returns the next. If there is none, that is the last
// that run does.
func (c *combiner) finish(b *batch) *batch {
	b.cancel()
	c.mu.Lock()
	next := c.nextLocked()
	c.running = next != nil
	c.mu.Unlock()
	for _, one := range b.calls {
		close(one.done)
	}
	return next
}

// apply makes the changes of the batch by one write, again and again until no other client came in
// between. If no change writes, it confirms the number that they saw.
func (c *combiner) apply(b *batch) error {
	for {
		if c.known == nil {
			at, err := c.cell.read(b.ctx)
			if err != nil {
				return err
			}
			c.known = &at
		}
		v, err := c.number.decode(*c.known)
		if err != nil {
			return err
		}
		after, writes := b.changed(v, c.number)
		if !writes {
			err = c.cell.confirm(b.ctx, *c.known)
		} else {
			var now state
			if now, err = c.cell.replace(b.ctx, *c.known, c.number.encode(after)); err == nil {
				c.known = &now
			}
		}
		if err != errStale { //nolint:errorlint // it is never wrapped
			return err
		}
		c.known = nil
	}
}

// changed applies the changes to v one after another. It leaves out those that fail.
func (b *batch) changed(v int64, n number) (after int64, writes bool) {
	for _, one := range b.calls {
		one.after, one.writes, one.err = one.change(v)
		if one.err == nil && !n.fits(one.after) {
			one.writes, one.err = false, ErrOverflow
		}
		if one.writes {
			v, writes = one.after, true
		}
	}
	return v, writes
}
