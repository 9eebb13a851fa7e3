package waitqueue

import (
	"context"
	"sync"

	"github.com/docent-go/docent/framework"
)

// listings are the listings in flight that the attempts of one client share. If a listing contains
// a znode, it was made while that znode existed. So it shows all contenders that can be ahead of
// the znode, without a watch on the directory. A listing is dropped when no attempt waits for it.
//
// Sharing is an optimisation: without it, an attempt would list along with each creation, and for
// itself while it waits.
type listings struct {
	mu  sync.Mutex // guards following; never held across a request
	all map[listingKey]*underway
}

// A listingKey is what attempts that share listings have in common.
type listingKey struct {
	session       int64
	dir           string // in the ensemble
	kind, refused string // the first of the queue's kinds, and the one that it refuses
}

// underway is what is on its way for one key.
type underway struct {
	along  int            // creations that have a listing behind them
	shared *sharedListing // nil for none
}

// alongAtMost is how many attempts of a session list along with their creations at one time, which
// costs them no round trip. Those beyond wait for a listing that they share.
const alongAtMost = 4

// A request asks for the queue.
type request func(context.Context) ([]Node, error)

// A sharedListing is one request that several attempts wait for.
type sharedListing struct {
	cancel  context.CancelFunc
	waiting int           // attempts; guarded by listings.mu
	done    chan struct{} // closed with nodes and err set
	nodes   []Node        // never changed
	err     error
}

type listingsKey struct{}

func listingsOf(c *framework.Client) *listings {
	return c.Shared(listingsKey{}, func() any {
		return &listings{all: make(map[listingKey]*underway)}
	}).(*listings)
}

// begin reports whether an attempt has to list along with its creation. The attempt calls end when
// the creation has been answered or has failed.
func (ls *listings) begin(key listingKey) (along bool, end func()) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	u := ls.underwayLocked(key)
	if u.along >= alongAtMost || u.shared != nil {
		return false, func() {}
	}
	u.along++
	return true, func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		u.along--
		ls.forgetLocked(key)
	}
}

func (ls *listings) underwayLocked(key listingKey) *underway {
	u := ls.all[key]
	if u == nil {
		u = new(underway)
		ls.all[key] = u
	}
	return u
}

// forgetLocked forgets the key if nothing is on its way.
func (ls *listings) forgetLocked(key listingKey) {
	if *ls.all[key] == (underway{}) {
		delete(ls.all, key)
	}
}

// list returns the nodes of the listing that is on its way, if enough accepts them. Otherwise it
// returns those of the next listing, which is sent after list was called. If ctx ends first, the
// request goes on as long as another attempt waits for it.
func (ls *listings) list(
	ctx context.Context, key listingKey, ask request, enough func([]Node) bool,
) ([]Node, error) {
	l, sent := ls.join(ctx, key, ask)
	nodes, err := ls.wait(ctx, key, l)
	if sent || ctx.Err() != nil || err == nil && enough(nodes) {
		return nodes, err
	}
	l, _ = ls.join(ctx, key, ask)
	return ls.wait(ctx, key, l)
}

// join returns the listing on its way, or sends one.
func (ls *listings) join(
	ctx context.Context, key listingKey, ask request,
) (l *sharedListing, sent bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	u := ls.underwayLocked(key)
	if sent = u.shared == nil; sent {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		u.shared = &sharedListing{cancel: cancel, done: make(chan struct{})}
		go ls.run(ctx, key, u.shared, ask) // the waiting attempts wait for its end: see leave
	}
	u.shared.waiting++
	return u.shared, sent
}

func (ls *listings) run(ctx context.Context, key listingKey, l *sharedListing, ask request) {
	defer close(l.done)
	defer l.cancel()
	l.nodes, l.err = ask(ctx)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.retireLocked(key, l)
}

// retireLocked makes room for the next listing.
func (ls *listings) retireLocked(key listingKey, l *sharedListing) {
	if u := ls.all[key]; u != nil && u.shared == l {
		u.shared = nil
		ls.forgetLocked(key)
	}
}

func (ls *listings) wait(ctx context.Context, key listingKey, l *sharedListing) ([]Node, error) {
	select {
	case <-l.done:
		return l.nodes, l.err
	case <-ctx.Done():
		ls.leave(key, l)
		return nil, ctx.Err()
	}
}

// leave ends the request if no other attempt waits for it.
func (ls *listings) leave(key listingKey, l *sharedListing) {
	ls.mu.Lock()
	l.waiting--
	last := l.waiting == 0
	if last {
		ls.retireLocked(key, l)
	}
	ls.mu.Unlock()
	if last {
		l.cancel()
		<-l.done
	}
}
