package queue

import (
	"context"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"
)

// look returns where the attempt's node stands: by the ledger where it has just been
// created and that will do, else by a listing. A node that is not listed is gone: the list
// is no older than the node, since it was read by the session that created it.
func (a *Attempt) look(ctx context.Context) (position, error) {
	fresh := a.fresh
	a.fresh = false
	if fresh && a.listed == nil && a.beside == nil {
		pos, ok, err := a.lookUp(ctx)
		if ok || err != nil {
			return pos, err
		}
	}
	found, err := a.list(ctx)
	if err != nil {
		return position{}, err
	}
	return a.locate(ctx, found.nodes)
}

// baseAtMost is how long an attempt waits for another's listing, which usually comes along
// with the reply to its own creation; the other one may have to try again.
const baseAtMost = 100 * time.Millisecond

// confirm is look for who does not wait: that somebody is ahead is said by a listing, since
// the ledger may show some that have gone.
func (a *Attempt) confirm(ctx context.Context) (position, error) {
	known := a.fresh && a.listed == nil
	pos, err := a.look(ctx)
	if known && err == nil && pos.ahead != "" {
		return a.look(ctx)
	}
	return pos, err
}

// lookUp returns where the new node stands by the ledger, if that knows: by then, when
// somebody else's listing is on its way.
func (a *Attempt) lookUp(ctx context.Context) (pos position, ok bool, err error) {
	if a.awaits != nil {
		patience := time.NewTimer(baseAtMost)
		defer patience.Stop()
		select {
		case <-a.awaits.done:
		case <-patience.C:
			a.book().despair(a.awaits)
		case <-a.hold.Lost():
			return position{}, false, a.hold.Err()
		case <-ctx.Done():
			a.fresh = true
			return position{}, false, ctxerr.Of(ctx)
		}
	}
	pos, ok = a.book().findNew(a.queue, a.self)
	return pos, ok, nil
}

// locate returns where the attempt's node stands among the nodes.
func (a *Attempt) locate(ctx context.Context, nodes []Node) (position, error) {
	own := Index(nodes, a.self.Name)
	if own < 0 {
		return position{}, errGone
	}
	counted := nodes[own].Sequence != lastSequence
	nodes, err := a.settle(ctx, nodes, own)
	if err != nil {
		return position{}, err
	}
	if own = Index(nodes, a.self.Name); own < 0 {
		return position{}, errGone
	}
	if a.beside != nil {
		return position{place: own}, a.checkBeside(nodes)
	}
	pos := a.queue.position(nodes, own)
	if counted && pos.ahead != "" {
		pos.nextCovered = a.book().covers(pos.next)
	}
	return pos, nil
}

// list returns the queue, as listed with the creation of the node or anew.
func (a *Attempt) list(ctx context.Context) (listing, error) {
	if found := a.listed; found != nil {
		a.listed = nil
		return *found, nil
	}
	found, err := a.queue.look(ctx, a.client)
	if err == nil && a.beside == nil {
		a.book().renew(found)
	}
	return found, err
}
