package contender

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/retry"
)

// Participants returns the contenders of q in order, without those that leave meanwhile.
func Participants(ctx context.Context, q *waitqueue.Queue) ([]lease.Participant, error) {
	found, nodes, _, err := Read(ctx, q)
	for i := range found {
		found[i].Holder = q.Predecessor(nodes, i, i) < 0
	}
	return found, err
}

// Read returns the contenders of q in order, without those that leave meanwhile, with their nodes, and what was read
// of each. It knows no holders.
func Read(ctx context.Context, q *waitqueue.Queue) ([]lease.Participant, []queuenode.Node, []framework.Read, error) {
	listed, err := q.List(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	paths := make([]string, len(listed))
	for i, node := range listed {
		paths[i] = zkpath.Join(q.Dir, node.Name)
	}
	all, errs := q.Client.GetEach(ctx, paths...)
	found, nodes, reads := make([]lease.Participant, 0, len(listed)), listed[:0], all[:0]
	for i, node := range listed {
		switch err := errs[i]; {
		case errors.Is(err, framework.ErrNoNode):
			continue
		case err != nil && !args.Unreadable(err):
			return nil, nil, nil, err
		}
		found = append(found, OfRead(paths[i], node, all[i], errs[i]))
		nodes, reads = append(nodes, node), append(reads, all[i])
	}
	return found, nodes, reads, nil
}

// First returns the first contender of the queue, as far as the client's server knows; false if there
// is none.
func First(ctx context.Context, q *waitqueue.Queue) (lease.Participant, bool, error) {
	return firstOf(ctx, q, q.Client.Get)
}

// queuesAtOnce is how many queues FirstOfEach reads at a time.
const queuesAtOnce = 64

// FirstOfEach returns the first contender of each queue, and joins the errors. A queue without one, or whose
// first can't be read, has the zero Participant.
func FirstOfEach(ctx context.Context, queues []*waitqueue.Queue) ([]lease.Participant, error) {
	usercall.Require("ctx", ctx != nil) // here, because First has a goroutine of its own
	firsts := make([]lease.Participant, len(queues))
	faults := make([]error, len(queues))
	var reads sync.WaitGroup
	room := make(chan struct{}, queuesAtOnce)
	for i, q := range queues {
		room <- struct{}{}
		reads.Go(func() {
			if first, ok, err := First(ctx, q); ok && first.Err == nil {
				firsts[i] = first
			} else {
				faults[i] = cmp.Or(err, first.Err)
			}
			<-room
		})
	}
	reads.Wait()
	return firsts, errors.Join(faults...)
}

// firstOf lists, and returns the first contender whose znode read finds.
func firstOf(
	ctx context.Context, q *waitqueue.Queue,
	read func(ctx context.Context, path string) ([]byte, framework.Stat, error),
) (lease.Participant, bool, error) {
	nodes, err := q.List(ctx)
	for _, node := range nodes {
		path := zkpath.Join(q.Dir, node.Name)
		data, st, err := read(ctx, path)
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		if err != nil && !args.Unreadable(err) {
			return lease.Participant{}, false, err
		}
		p := OfRead(path, node, framework.Read{Data: data, Stat: st}, err)
		p.Holder = true
		return p, true, nil
	}
	return lease.Participant{}, false, err
}

// OfRead returns the contender of a queue whose znode is node, at path, of which the read has the error.
func OfRead(path string, node queuenode.Node, read framework.Read, err error) lease.Participant {
	p := OfNode(path, node, read.Data, read.Stat)
	p.Err = err
	return p
}

// OfNode returns the contender of a queue whose znode is node, at path.
func OfNode(path string, node queuenode.Node, data []byte, st framework.Stat) lease.Participant {
	p := At(path, data, st)
	p.Kind, p.Sequence = node.Kind, int64(node.Sequence)
	return p
}

// At returns the contender whose znode is at path.
func At(path string, data []byte, st framework.Stat) lease.Participant {
	p := lease.Participant{Path: path, Session: st.EphemeralOwner, Data: data}
	if m, ok := lease.DecodeMetadata(data); ok {
		p.Metadata, p.Data = m, m.Data
	}
	if queuenode.RequestsRelease(data, st.Version) {
		p.Revoked, p.Data = true, nil
	}
	return p
}

// Pauses are the waits between calls that failed, although each was retried by the client's policy.
var Pauses = retry.BoundedExponential(100*time.Millisecond, 5*time.Second, math.MaxInt) //nolint:gochecknoglobals // immutable

// ObserveFirst returns the first contender of the queue, now and whenever that changes, the latest
// alone. It returns false while there is none, and while it is not known: the client is not Connected,
// or the request fails. warn is called with the error of the first of several requests that fail. The
// sequence ends with ctx, with the client, or when the loop is left.
func ObserveFirst(
	ctx context.Context, q *waitqueue.Queue, warn func(error),
) iter.Seq2[lease.Participant, bool] {
	usercall.Require("ctx", ctx != nil)
	return func(yield func(lease.Participant, bool) bool) {
		o := &observer{queue: q, ctx: ctx, waits: Pauses.NewBackOff(), warn: warn, rounds: pace.Rounds(), leave: func() {}}
		defer func() { o.leave() }()
		var shown *observation
		for {
			now := o.observe()
			if o.over() {
				return
			}
			if shown == nil || !reflect.DeepEqual(*shown, now) { //nolint:govet // errors of one text are one observation
				shown = &now
				if !yield(now.first, now.known) {
					return
				}
			}
			o.wait()
		}
	}
}

// An observation is what an observer yields.
type observation struct {
	first lease.Participant
	known bool
}

// An observer finds out which contender is first. It belongs to one goroutine.
type observer struct {
	queue  *waitqueue.Queue
	ctx    context.Context // of the loop
	waits  backoff.BackOff // after requests that failed
	warn   func(error)
	rounds pace.Pace // of observations that have to be repeated

	// of the latest observation
	state  context.Context  // ends with the client's state at that time, or with ctx
	leave  func()           // forgets what the observation waits for
	watch  *framework.Watch // fires when another is first; nil for none
	failed bool
}

// begin begins an observation, and reports whether the client is connected.
func (o *observer) begin() (connected bool) {
	state, end := context.WithCancel(o.ctx)
	remove := o.queue.Client.OnState(func(change framework.StateChange) {
		if change.From != 0 {
			end()
		}
	})
	o.state, o.leave = state, func() {
		remove()
		end()
		if o.watch != nil {
			o.watch.Close()
			o.watch = nil
		}
	}
	return o.queue.Client.State() == framework.Connected // a later change ends state
}

func (o *observer) over() bool {
	return o.ctx.Err() != nil || o.queue.Client.State() == framework.Closed
}

// observe returns the contender that is first now, and watches for a change.
func (o *observer) observe() observation {
	for {
		o.leave()
		if !o.begin() {
			return observation{}
		}
		first, known, err := firstOf(o.state, o.queue, o.read)
		there := false
		if err == nil && !known {
			there, err = o.awaitFirst()
		}
		switch {
		case o.over():
			return observation{}
		case o.state.Err() != nil, there:
			_ = o.rounds.Wait(o.ctx, 1) // ends with ctx: then it is over
			continue
		case err != nil && !o.failed:
			o.warn(err)
		case err == nil:
			o.waits.Reset()
		}
		o.failed = err != nil
		return observation{first, known}
	}
}

// read reads the znode of the first contender and watches it.
func (o *observer) read(ctx context.Context, path string) ([]byte, framework.Stat, error) {
	watch, err := o.queue.Client.Watch(ctx, path, framework.WatchData)
	if err != nil && args.Unreadable(err) {
		return nil, framework.Stat{}, o.watchUnread(ctx, path, err)
	}
	if err != nil {
		return nil, framework.Stat{}, err
	}
	o.watch = watch
	st, _ := watch.Stat()
	return watch.Data(), st, nil
}

// watchUnread watches a znode whose data can't be read. But servers refuse any watch of one that may not be read, or
// send no event of it: there it watches the directory. It returns why, or another error.
func (o *observer) watchUnread(ctx context.Context, path string, why error) error {
	watched, kind := path, framework.WatchExists
	if errors.Is(why, framework.ErrNoAuth) {
		watched, kind = o.queue.Dir, framework.WatchChildren
	}
	watch, err := o.queue.Client.Watch(ctx, watched, kind)
	if args.Unreadable(err) {
		return errors.New(err.Error()) // firstOf would take it for why, and no watch is set
	}
	if err != nil {
		return err
	}
	_, there := watch.Stat()
	if kind == framework.WatchChildren {
		_, name := zkpath.Split(path)
		there = slices.Contains(watch.Children(), name)
	}
	if !there {
		watch.Close()
		return framework.ErrNoNode
	}
	o.watch = watch
	return why
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

// wait returns when it is time to observe again.
func (o *observer) wait() {
	var fired <-chan struct{}
	if o.watch != nil {
		o.watch.Recheck()
		fired = o.watch.Fired()
	}
	var retry <-chan time.Time
	if o.failed {
		retry = time.After(o.waits.NextBackOff())
	}
	select {
	case <-fired:
	case <-o.state.Done():
	case <-retry:
	}
}
