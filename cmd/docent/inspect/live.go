package inspect

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cachebounds"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/cache"
)

const (
	viewPause  = 250 * time.Millisecond // between two views, at least
	secondLook = 2 * time.Second        // after a change, if no other follows
	retryPause = time.Second            // between questions to a cache that is not ready
)

// A Live follows the locks at a path and below it. It keeps a [cache.Cache] of the path, so while nothing
// changes it sends no request. Its methods may be called concurrently.
type Live struct {
	client  *framework.Client
	cache   *cache.Cache
	leftOut *atomic.Int64 // how many znodes cache leaves out
	marks   marks
	loop    followLoop
	ctx     context.Context // ends at Close, or with the client
	cancel  context.CancelCauseFunc
	wg      sync.WaitGroup // the goroutines of run and watchUnread
	closed  func() error

	mu      sync.Mutex // guards following; never held across a request or a callback
	view    View
	changed chan struct{} // closed and replaced when view changes
}

// FollowLimits bound what [Follow] reads. A field that is 0 has its default, and one that is negative has
// no bound.
type FollowLimits struct {
	Znodes int // that are copied, those of no lock included; default 100,000
	Rate   int // reads and listings per second; default 1,000
}

// The defaults of FollowLimits.
const (
	defaultZnodes     = 100_000
	defaultFollowRate = 1_000
)

// A bounded option has a cache read no more than a live view needs.
type bounded struct {
	cache.Option
	cachebounds.Bounds
}

func (l FollowLimits) bounds(leftOut func(n int)) cachebounds.Bounds {
	return cachebounds.Bounds{
		ByPath: NamedContenders(), ByStat: mayBeLock,
		Znodes: max(0, cmp.Or(l.Znodes, defaultZnodes)), Rate: max(0, cmp.Or(l.Rate, defaultFollowRate)),
		LeftOut: leftOut,
	}
}

// Follow begins to follow the locks at root and below it, and returns at once. It lists all znodes there,
// within the limits. It reads the data of contenders, and of znodes that may be a lock by themselves:
// ephemeral ones, and those with a number as data. Snapshot.LeftOut of a view is the number of znodes
// that the limits leave out, with all below them. Snapshot.Unread has the paths that the client may
// not read, as [cache.Snapshot.Unread] knows them. Close ends it. Faulty arguments are returned joined.
func Follow(c *framework.Client, root string, limits FollowLimits) (*Live, error) {
	if err := clientFault(c); err != nil {
		return nil, opError(c, "follow", root, errors.Join(err, framework.ValidatePath(root)))
	}
	leftOut := new(atomic.Int64)
	filter := cache.WithFilter(func(path string) bool { return !isSystem(c, path) })
	copied, err := cache.New(c, root, bounded{filter, limits.bounds(func(n int) { leftOut.Store(int64(n)) })})
	if err != nil {
		return nil, opError(c, "follow", root, errors.Unwrap(err))
	}
	l := &Live{
		client: c, cache: copied, leftOut: leftOut, loop: newFollowLoop(), marks: newMarks(),
		view: View{State: Connecting, Since: time.Now()}, changed: make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancelCause(context.Background()) // the follower's own life
	unlisten, unstate := copied.OnEvent(l.marks.add), c.OnState(func(framework.StateChange) { l.marks.wake() })
	l.wg.Go(l.run)
	l.wg.Go(l.watchUnread)
	l.closed = sync.OnceValue(func() error {
		l.cancel(framework.ErrClosed)
		l.wg.Wait()
		unlisten()
		unstate()
		return copied.Close()
	})
	return l, nil
}

// Close ends the Live, and all sequences of Views. Its goroutines are gone when it returns. The error
// is that of [cache.Cache.Close].
func (l *Live) Close() error { return opError(l.client, "close", l.cache.Path(), l.closed()) }

// View returns the present view.
func (l *Live) View() View {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view
}

// Views returns the present view, and then the latest one whenever that has changed, at most four a
// second. Two seconds after the last change it returns the unchanged view once more. So what both
// have in common, [Deadlocks] for one, existed all the time between them. The sequence ends when ctx
// ends, or the Live is closed.
func (l *Live) Views(ctx context.Context) iter.Seq[View] {
	usercall.Require("ctx", ctx != nil)
	return func(yield func(View) bool) {
		for ctx.Err() == nil && l.ctx.Err() == nil {
			l.mu.Lock()
			view, changed := l.view, l.changed
			l.mu.Unlock()
			if !yield(view) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			case <-l.ctx.Done():
			}
		}
	}
}

// run makes views until the Live is closed. Follow starts it, and Close waits for it.
func (l *Live) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for look := false; ; {
		select {
		case <-l.marks.changed:
			look = true
		case <-timer.C:
		case <-l.ctx.Done():
			return
		}
		view := l.next(l.marks.take())
		l.publish(view)
		pause := retryPause
		if view.State == Current {
			pause = secondLook
		}
		timer.Reset(pause)
		if view.State == Current && !look { // the second look is over
			timer.Stop()
		}
		look = false
		select {
		case <-time.After(viewPause):
		case <-l.ctx.Done():
			return
		}
	}
}

// watchUnread wakes run if the cache leaves out other znodes than before, because no event of the cache
// says that. Follow starts it, and Close waits for it.
func (l *Live) watchUnread() {
	var last []Unread
	var leftOut int64
	for tree := range l.cache.Snapshots(l.ctx) { //nolint:errcheck // an error ends the range, as the end of ctx does
		now, out := unreadOf(tree), l.leftOut.Load()
		if out != leftOut || !slices.EqualFunc(now, last, func(a, b Unread) bool { return a.Path == b.Path }) {
			l.marks.wake()
		}
		last, leftOut = now, out
	}
}

// next returns the view after the changes below the paths.
func (l *Live) next(dirty map[string]struct{}) View {
	since, stale := l.cache.Stale() // before the snapshot: a view is no newer than it says
	view := View{State: Current, Since: since}
	last := l.View()
	if stale {
		view.State, view.Cause = l.unready(last.State)
	}
	view.Snapshot = l.loop.snapshot(l.cache.Snapshot(), dirty)
	view.LeftOut = int(l.leftOut.Load())
	view.Complete = view.LeftOut == 0 && (view.State == Current || view.State == Stale && last.Complete)
	switch {
	case view.State == last.State:
		view.Since = last.Since
	case view.State == Current:
		view.Since = view.At
	}
	if view.State == Stale { // it is as old as the last that was current
		view.At = last.At
	}
	return view
}

// unready returns the state of a Live whose cache is not ready, and why.
func (l *Live) unready(last ViewState) (ViewState, error) {
	over, cancel := context.WithCancel(l.ctx)
	cancel()
	why := causeOf(l.cache.Ready(over))
	switch {
	case last == Current || last == Stale:
		return Stale, why
	case l.client.State() == framework.Connected:
		return Scanning, why
	}
	return Connecting, why
}

func (l *Live) publish(view View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.view = view
	close(l.changed)
	l.changed = make(chan struct{})
}
