package counter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/args"
)

// A combiner makes the changes of one client to one number. Changes that are asked for while a write
// is under way are the next batch: one write makes all of them, in order.
type combiner struct {
	register register
	width    width

	mu      sync.Mutex // guards following; never held across a request
	waiting []*call    // the next batch
	running bool       // run is at work

	known *state // the latest state that is known, nil for none; only run uses it
}

// A key is what the calls that are combined have in common.
type key struct {
	view  *framework.Client // the one that the user has, because it can be bound to a session
	path  string
	int32 bool
	acl   string
}

// combinerOf returns the combiner of the number at path, of 4 bytes if int32 is true and of 8 otherwise. The
// ACL is that of a znode that the combiner creates; nil is the client's. Callers with the same
// arguments share a combiner as long as one of them keeps it.
func combinerOf(c *framework.Client, path string, int32 bool, list []acl.Entry) *combiner {
	k := key{view: c, path: path, int32: int32}
	for _, e := range list {
		k.acl += fmt.Sprintf("%d %q %q ", e.Perms, e.Scheme, e.ID)
	}
	return sharedOf(c).combiner(k, func() *combiner {
		return &combiner{register: register{client: c, path: path, acl: list}, width: widthOf(int32)}
	})
}

// shared has the combiners of a client that are in use.
type shared struct {
	mu  sync.Mutex // guards following
	all map[key]weak.Pointer[combiner]
}

func sharedOf(c *framework.Client) *shared {
	return framework.Shared(c, func() *shared { return &shared{all: make(map[key]weak.Pointer[combiner])} })
}

func (s *shared) combiner(k key, create func() *combiner) *combiner {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.all[k].Value(); found != nil {
		return found
	}
	c := create()
	ref := weak.Make(c)
	s.all[k] = ref
	runtime.AddCleanup(c, func(k key) { s.forget(k, ref) }, k)
	return c
}

// forget removes a combiner that nothing uses any more.
func (s *shared) forget(k key, ref weak.Pointer[combiner]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[k] == ref {
		delete(s.all, k)
	}
}

// get returns the number that the client's server knows, 0 if there is no znode.
func (c *combiner) get(ctx context.Context) (int64, error) {
	at, err := c.register.read(ctx)
	if err != nil {
		return 0, err
	}
	return c.width.decode(at.data)
}

// A change returns the number after a change of v, and whether the change writes.
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

// do makes the change, and returns the number after it, and whether it wrote. The error wraps
// framework.ErrUnknownOutcome if that is not known. If ctx ends first, the error wraps ctx's, unless
// the outcome is known then.
func (c *combiner) do(ctx context.Context, fn change) (after int64, wrote bool, err error) {
	one, err := c.submit(ctx, fn)
	return one.after, err == nil && one.writes, err
}

// submit makes the change, and returns the call with its result.
func (c *combiner) submit(ctx context.Context, fn change) (*call, error) {
	usercall.Require("ctx", ctx != nil)
	one := &call{change: fn, ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
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
		return args.Ended(ctx, c.register.client)
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
			return args.Ended(ctx, c.register.client)
		}
	default:
	}
	return fmt.Errorf("%w: %w", args.Ended(ctx, c.register.client), framework.ErrUnknownOutcome)
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
// between. If no change writes, the number that they saw was read during the batch.
func (c *combiner) apply(b *batch) error {
	for latest := false; ; {
		if c.known == nil || c.known.session != c.register.client.Session().ID {
			at, err := c.register.read(b.ctx)
			if err != nil {
				return err
			}
			c.known = &at
		}
		v, err := c.width.decode(c.known.data)
		if err != nil {
			return err
		}
		after, writes := b.changed(v, c.width)
		switch {
		case writes:
			var now state
			if now, err = c.register.replace(b.ctx, *c.known, c.width.encode(after)); err == nil {
				c.known = &now
			}
			if err != errStale { //nolint:errorlint // it is never wrapped
				return err
			}
			c.known, latest = nil, false
		case latest:
			return nil
		default:
			at, err := c.register.readLatest(b.ctx)
			if err != nil {
				return err
			}
			c.known, latest = &at, true
		}
	}
}

// changed applies the changes to v one after another. It leaves out those that fail.
func (b *batch) changed(v int64, w width) (after int64, writes bool) {
	for _, one := range b.calls {
		one.after, one.writes, one.err = one.change(v)
		if one.err == nil && !w.fits(one.after) {
			one.err = ErrOverflow
		}
		if one.err == nil && one.writes {
			v, writes = one.after, true
		}
	}
	return v, writes
}

// A width is the number of bytes of a number.
type width int

func widthOf(int32 bool) width {
	if int32 {
		return 4
	}
	return 8
}

// decode returns the number of a znode's data. No data is 0, as for Curator, and as a missing znode.
func (w width) decode(data []byte) (int64, error) {
	switch {
	case len(data) == 0:
		return 0, nil
	case len(data) != int(w):
		return 0, fmt.Errorf("%w: %d bytes, want %d", ErrCorrupt, len(data), int(w))
	case w == 4:
		return int64(int32(binary.BigEndian.Uint32(data))), nil
	}
	return int64(binary.BigEndian.Uint64(data)), nil
}

func (w width) encode(v int64) []byte {
	if w == 4 {
		return binary.BigEndian.AppendUint32(nil, uint32(v))
	}
	return binary.BigEndian.AppendUint64(nil, uint64(v))
}

// fits reports whether v is in the width's range.
func (w width) fits(v int64) bool {
	return w == 8 || v >= math.MinInt32 && v <= math.MaxInt32
}
