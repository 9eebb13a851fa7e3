package waitqueue

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
)

// A waiting is what an attempt has while it waits: watches on its own node and on
// those whose end means something to it.
type waiting struct {
	attempt *Attempt
	own     watched // should an operator delete the node, it is to queue again
	ahead   watched // the node that it waits for
	next    watched // the one that it would wait for then; see await
	place   int     // how many contenders were ahead when it looked last
}

// waits returns what the attempt has while it waits.
func (a *Attempt) waits() *waiting {
	if a.wait == nil {
		a.wait = &waiting{attempt: a}
	}
	return a.wait
}

// BlockedBy returns how many contenders were ahead of the attempt when it looked last, the one that it
// waits for, and what that one's znode held when it was read to be watched. ahead is -1 if the attempt
// saw none. It is for the goroutine that drives the attempt, which has failed.
func (a *Attempt) BlockedBy() (ahead int, by Node, data []byte, st framework.Stat) {
	if a.wait == nil || a.wait.ahead.watch == nil {
		return -1, Node{}, nil, framework.Stat{}
	}
	by, _ = parse(a.wait.ahead.name, a.queue.Kinds) // it was listed as a contender
	st, _ = a.wait.ahead.watch.Stat()
	return a.wait.place, by, a.wait.ahead.watch.Data(), st
}

// end gives up what is left, and returns the watch on the own node, if there is one.
func (w *waiting) end() (own *framework.Watch) {
	w.ahead.close()
	w.next.close()
	return w.own.watch
}

// errStale means that only a new listing tells where the attempt stands.
var errStale = errors.New("waitqueue: what was listed is out of date")

// await returns nil when nobody is ahead. An outage that the session survives
// costs time and not the place.
//
// If the last listing showed nobody ahead but one node, the end of that one is the grant: nobody
// can come ahead of a node that exists, but for [Queue.Heirs]. That ours exists is told by
// the watch on it, since a server sends events in the order of what they tell. As long
// as there are others, too, the next one is watched as well, so that the listing is up
// to date when the last one goes, and nothing is left to be asked then.
func (a *Attempt) await(ctx context.Context) error {
	for {
		pos, err := a.look(ctx)
		for err == nil && pos.ahead != "" {
			a.tell(pos.place)
			a.observeWait(pos.place)
			pos, err = a.waits().step(ctx, pos)
		}
		switch {
		case err == nil:
			return nil
		case err == errStale: //nolint:errorlint // it is never wrapped
		case ctx.Err() != nil || !disconnected(err):
			return err
		}
	}
}

// disconnected reports whether err is only for lack of a connection.
func disconnected(err error) bool {
	return ctxerr.Is(err, framework.ErrNotConnected) || ctxerr.Is(err, framework.ErrUnknownOutcome)
}

// step waits until something happens, and returns the position then: the zero one if nothing is in the
// way any more. It returns errStale if that takes a listing to know.
func (w *waiting) step(ctx context.Context, pos position) (position, error) {
	w.place = pos.place
	if err := w.arm(ctx, pos); err != nil {
		return pos, err
	}
	if w.ahead.gone || w.next.gone {
		return w.left(pos)
	}
	slow := time.NewTimer(UntilSlowLook(w.attempt.client))
	defer slow.Stop()
	for {
		select {
		case <-w.ahead.watch.Fired():
			return w.left(pos)
		case <-w.next.fired():
			return w.left(pos)
		case <-w.own.watch.Fired():
			return pos, errStale
		case <-slow.C:
			if err := w.slowLook(ctx); err != nil {
				return pos, err
			}
			slow.Reset(UntilSlowLook(w.attempt.client))
		case <-w.attempt.hold.Lost():
			return pos, w.attempt.hold.Err()
		case <-ctx.Done():
			return pos, ctxerr.Of(ctx)
		}
	}
}

// left returns the position after the node ahead or the next one was deleted, if the last listing tells it.
func (w *waiting) left(pos position) (position, error) {
	switch {
	case pos.last && w.ahead.deleted() && w.own.watch.Valid():
		return position{}, nil
	case pos.both && w.next.deleted() && !w.ahead.deleted():
		return pos.withoutNext(), nil
	}
	return pos, errStale
}

// arm sets the watches that are missing, within one round trip.
func (w *waiting) arm(ctx context.Context, pos position) error {
	var missing []*watched
	var paths []string
	for _, one := range []struct {
		slot *watched
		name string
	}{{&w.own, w.attempt.self.Name}, {&w.ahead, pos.ahead}, {&w.next, pos.next}} {
		if one.slot.turn(one.name) {
			missing = append(missing, one.slot)
			paths = append(paths, framework.JoinPath(w.attempt.queue.Dir, one.name))
		}
	}
	if missing == nil {
		return nil
	}
	watches, errs := w.attempt.client.WatchEach(ctx, framework.WatchData, paths...)
	var fault error
	for i, one := range missing {
		if err := one.set(watches[i], errs[i]); err != nil {
			fault = err
		}
	}
	if w.ahead.watch != nil {
		w.attempt.observeAhead(w.ahead.watch)
	}
	if fault == nil && !w.stands() {
		return errGone
	}
	return fault
}

// stands reports whether the watch on the own node found that node, and not one
// that somebody else created at its path.
func (w *waiting) stands() bool {
	if w.own.gone {
		return false
	}
	st, _ := w.own.watch.Stat()
	return st.Czxid == w.attempt.stat.Czxid
}
