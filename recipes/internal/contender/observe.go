package contender

import (
	"context"
	"errors"
	"iter"
	"math"
	"reflect"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/retry"
)

// Pauses are the waits between calls that failed, although each was retried by the client's policy.
var Pauses = retry.BoundedExponential(100*time.Millisecond, 5*time.Second, math.MaxInt) //nolint:gochecknoglobals // immutable

// ObserveFirst returns the first contender of the queue, now and whenever that changes, the latest
// alone. It returns false while there is none, and while it is not known: the client is not Connected,
// or the request fails. warn is called with the error of the first of several requests that fail. The
// sequence ends with ctx, with the client, or when the loop is left.
func ObserveFirst(
	ctx context.Context, q *waitqueue.Queue, warn func(error),
) iter.Seq2[lease.Participant, bool] {
	return func(yield func(lease.Participant, bool) bool) {
		o := &observer{queue: q, ctx: cause.Inside(ctx), waits: Pauses.NewBackOff(), warn: warn, rounds: pace.Rounds()}
		o.enter(q.Client.State() == framework.Connected)
		defer o.close()
		defer q.Client.OnState(o.onState)()
		var shown *sight
		for {
			now := o.look()
			if o.over() {
				return
			}
			if shown == nil || !reflect.DeepEqual(*shown, now) {
				shown = &now
				if !yield(now.first, now.known) {
					return
				}
			}
			o.wait()
		}
	}
}

// A sight is what an observer shows.
type sight struct {
	first lease.Participant
	known bool
}

// An observer looks which contender is first. It belongs to one goroutine, but for onState.
type observer struct {
	queue  *waitqueue.Queue
	ctx    context.Context // of the loop
	waits  backoff.BackOff // after requests that failed
	warn   func(error)
	rounds pace.Pace // of looks that have to be repeated

	// of the latest look
	state  context.Context  // of the client at that time
	watch  *framework.Watch // fires when another is first; nil for none
	failed bool

	mu        sync.Mutex // guards following
	connected bool
	present   context.Context // ends with the client's state, or with ctx
	end       context.CancelFunc
}

// onState ends what depends on the client's state so far.
func (o *observer) onState(change framework.StateChange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	connected := change.To == framework.Connected
	if change.From != 0 || connected != o.connected { // else it is known from the beginning
		o.end()
		o.enter(connected)
	}
}

// enter begins a state of the client.
func (o *observer) enter(connected bool) {
	o.connected = connected
	o.present, o.end = context.WithCancel(o.ctx)
}

func (o *observer) close() {
	o.end()
	o.unwatch()
}

func (o *observer) over() bool {
	return o.ctx.Err() != nil || o.queue.Client.State() == framework.Closed
}

// look returns the contender that is first now, and watches for a change.
func (o *observer) look() sight {
	for {
		o.unwatch()
		o.mu.Lock()
		connected := o.connected
		o.state = o.present //nolint:fatcontext // it replaces the context of the round before
		o.mu.Unlock()
		if !connected {
			return sight{}
		}
		first, known, err := firstOf(o.state, o.queue, o.read)
		again := false
		if err == nil && !known {
			again, err = o.awaitFirst()
		}
		switch {
		case o.over():
			return sight{}
		case o.state.Err() != nil, again:
			_ = o.rounds.Wait(o.ctx, 1) // ends with ctx: then it is over
			continue
		case err != nil && !o.failed:
			o.warn(err)
		case err == nil:
			o.waits.Reset()
		}
		o.failed = err != nil
		return sight{first, known}
	}
}

// read reads the znode of the first contender and watches it.
func (o *observer) read(ctx context.Context, path string) ([]byte, framework.Stat, error) {
	watch, err := o.queue.Client.Watch(ctx, path, framework.WatchData)
	if err != nil {
		return nil, framework.Stat{}, err
	}
	o.watch = watch
	st, _ := watch.Stat()
	return watch.Data(), st, nil
}

// awaitFirst watches the directory while it has no contender. It reports whether there may be one by
// now.
func (o *observer) awaitFirst() (there bool, err error) {
	watch, err := o.queue.Client.Watch(o.state, o.queue.Dir, framework.WatchChildren)
	if errors.Is(err, framework.ErrNoNode) {
		watch, err = o.queue.Client.Watch(o.state, o.queue.Dir, framework.WatchExists)
		if err == nil {
			_, there = watch.Stat()
		}
	}
	if err != nil {
		return false, err
	}
	o.watch = watch
	return there || len(queuenode.Sort(watch.Children(), o.queue.Kinds...)) > 0, nil
}

// wait returns when it is time to look again.
func (o *observer) wait() {
	var fired <-chan struct{}
	if o.watch != nil {
		o.watch.Recheck()
		fired = o.watch.Fired()
	}
	var again <-chan time.Time
	if o.failed {
		again = time.After(o.waits.NextBackOff())
	}
	select {
	case <-fired:
	case <-o.state.Done():
	case <-again:
	}
}

func (o *observer) unwatch() {
	if o.watch != nil {
		o.watch.Close()
		o.watch = nil
	}
}
