package queue

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
)

// A waiting is what an attempt has while it waits: watches on its own node and on
// those whose end means something to it.
type waiting struct {
	attempt *Attempt
	ledger  *ledger
	own     watched // should an operator delete the node, it is to queue again
	ahead   watched // the node that it waits for
	next    watched // the one that it would wait for then; see await
}

// waits returns what the attempt has while it waits.
func (a *Attempt) waits() *waiting {
	if a.wait == nil {
		a.wait = &waiting{attempt: a, ledger: a.book()}
	}
	return a.wait
}

// end gives up what is left, and returns the watch on the own node, if there is one.
func (w *waiting) end() (own *framework.Watch) {
	own = w.own.watch
	if own != nil {
		w.ledger.uncover(w.own.name)
	}
	w.ahead.close(w.ledger)
	w.next.close(w.ledger)
	return own
}

// errStale means that only a new listing tells where the attempt stands.
var errStale = errors.New("queue: what was listed is out of date")

// await returns nil when nobody is ahead. An outage that the session survives
// costs time and not the place.
//
// Once a listing showed that nobody would be ahead but for one node, the end of
// that one is the grant: nobody can come ahead of a node that stands, see [ledger],
// and that ours stands is told by the watch on it, since a server sends events in
// the order of what they tell. As long as there are others, too, the next one is
// watched as well, so that the listing is up to date when the last one goes, and
// nothing is left to be asked then.
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

// step waits until something happens and returns where the attempt stands then, as
// far as that is known without a listing.
func (w *waiting) step(ctx context.Context, pos position) (position, error) {
	if err := w.arm(ctx, pos); err != nil {
		return position{}, err
	}
	switch {
	case w.ahead.gone:
		return w.passed(w.ahead.name)
	case w.next.gone:
		return w.passed(w.next.name)
	}
	select {
	case <-w.ahead.watch.Fired():
		return w.left(w.ahead)
	case <-w.next.fired():
		return w.left(w.next)
	case <-w.own.watch.Fired():
		return position{}, errStale
	case <-w.attempt.hold.Lost():
		return position{}, w.attempt.hold.Err()
	case <-ctx.Done():
		return position{}, ctxerr.Of(ctx)
	}
}

// left is called when the watch has fired.
func (w *waiting) left(one watched) (position, error) {
	if one.watch.Event() != framework.EventDeleted {
		return position{}, errStale
	}
	return w.passed(one.name)
}

// passed takes note that the node with the name has gone.
func (w *waiting) passed(name string) (position, error) {
	if node, ok := parse(name, w.attempt.queue.Kinds); ok {
		w.ledger.pass(node)
	}
	pos, known := w.ledger.find(w.attempt.queue, w.attempt.self)
	last := name == w.ahead.name
	switch {
	case !known || !w.own.watch.Stands():
		return position{}, errStale
	case last && pos.ahead == "":
		return pos, nil
	case last || pos.next != "" && !pos.nextCovered:
		return position{}, errStale // maybe it has gone, too, unseen
	}
	return pos, nil
}

// arm sets the watches that are missing, within one round trip.
func (w *waiting) arm(ctx context.Context, pos position) error {
	if pos.nextCovered {
		pos.next = ""
	}
	var missing []*watched
	var paths []string
	for _, one := range []struct {
		slot *watched
		name string
	}{{&w.own, w.attempt.self.Name}, {&w.ahead, pos.ahead}, {&w.next, pos.next}} {
		if one.slot.turn(w.ledger, one.name) {
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
		if err := one.set(w.ledger, watches[i], errs[i]); err != nil {
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
