//go:build !docent_plain

package waitqueue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
)

// listings are the listings in flight that the attempts of one client share. If a listing contains
// a znode, it was made while that znode existed. So it shows all contenders that can be ahead of
// the znode, without a watch on the directory. A listing is dropped when no attempt waits for it.
type listings struct {
	mu  sync.Mutex // guards following; never held across a request
	all map[listingKey]*underway

	// Of the client's attempts that have a node and no grant, by the node's name, which is unique: closed
	// at the grant; nil until the successor asks for it.
	granted map[string]chan struct{}
}

// A listingKey is what attempts that share listings have in common.
type listingKey struct {
	session int64
	dir     string // in the ensemble
	kind    string // the first of the queue's kinds
}

// underway is what is on its way for one key.
type underway struct {
	inFlight []*alongListing         // sent behind creations, in the order in which these began
	buffer   [maxAlong]*alongListing // the memory of inFlight
	latest   *alongListing           // of those that have ended, the last one with names; nil for none
	shared   *sharedListing          // nil for none
}

// An alongListing is a listing that is sent along with the creation of an attempt's node, right
// behind it. Other attempts of the session may use it if it contains their nodes, too.
type alongListing struct {
	ended chan struct{} // closed at the end
	names []string      // of the directory's children; nil for none; set before the end

	sort sync.Once
	view view // set by sort
}

// maxAlong is how many attempts of a session list along with their creations at one time, which
// costs them no round trip. Those beyond use these listings, or share one that is sent later.
const maxAlong = 4

// A sharedListing is one request that several attempts wait for.
type sharedListing struct {
	cancel  context.CancelFunc
	waiting int           // attempts; guarded by listings.mu
	done    chan struct{} // closed with view and err set
	view    view
	err     error
}

func listingsOf(c *framework.Client) *listings {
	return framework.Shared(c, func() *listings {
		return &listings{all: make(map[listingKey]*underway), granted: make(map[string]chan struct{})}
	})
}

// begin returns the listing that an attempt has to send along with its creation; nil if it need not. The
// attempt calls end when the creation has been answered or has failed.
func (ls *listings) begin(key listingKey) *alongListing {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	u := ls.underwayLocked(key)
	if len(u.inFlight) >= maxAlong || u.shared != nil {
		return nil
	}
	if u.inFlight == nil {
		u.inFlight = u.buffer[:0]
	}
	l := &alongListing{ended: make(chan struct{})}
	u.inFlight = append(u.inFlight, l)
	return l
}

// end ends the listing with the names that were listed; nil for none.
func (ls *listings) end(key listingKey, l *alongListing, names []string) {
	if l == nil {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	u := ls.all[key]
	if l.names = names; names != nil {
		u.latest = l
	}
	close(l.ended)
	i := slices.Index(u.inFlight, l)
	u.inFlight = slices.Delete(u.inFlight, i, i+1)
	ls.forgetLocked(key)
}

// listedAlong returns what the creation of another attempt has listed, if that contains the node
// with the name. It waits for the listings that are on their way. Replies come in the order of the
// requests, so one of them was sent after the node's creation, as a rule. The nodes are nil if none contains
// the node, or if none has come after most: another attempt's call may be held up by its user.
func (ls *listings) listedAlong(
	ctx context.Context, key listingKey, q *Queue, name string, most time.Duration,
) (view, error) {
	others := ls.alongListings(key)
	if len(others) == 0 {
		return view{}, nil
	}
	limit := time.NewTimer(most)
	defer limit.Stop()
	for _, l := range others {
		select {
		case <-l.ended:
		case <-limit.C:
			return view{}, nil
		case <-ctx.Done():
			return view{}, ctx.Err()
		}
		if !slices.Contains(l.names, name) {
			continue
		}
		if v := l.ordered(q); v.nodes != nil {
			return v, nil
		}
	}
	return view{}, nil
}

// alongListings returns the latest listing that has ended, if it is known, and those on their way.
func (ls *listings) alongListings(key listingKey) []*alongListing {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	u := ls.all[key]
	if u == nil {
		return nil
	}
	if u.latest == nil {
		return slices.Clone(u.inFlight)
	}
	return append([]*alongListing{u.latest}, u.inFlight...)
}

// ordered returns what the listing shows. Its nodes are nil if requests are needed for their order.
func (l *alongListing) ordered(q *Queue) view {
	l.sort.Do(func() {
		if v := q.viewOf(l.names); !slices.ContainsFunc(v.nodes, queuenode.Node.Overflowed) {
			l.view = v
		}
	})
	return l.view
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
	if u := ls.all[key]; len(u.inFlight) == 0 && u.shared == nil {
		delete(ls.all, key)
	}
}

// list returns what the listing that is on its way shows, if enough accepts that. Otherwise it
// returns what the next listing shows, which is sent after list was called. If ctx ends first, the
// request goes on as long as another attempt waits for it.
func (ls *listings) list(
	ctx context.Context, key listingKey, ask func(context.Context) (view, error), enough func(view) bool,
) (view, error) {
	l, sent := ls.join(ctx, key, ask)
	v, err := ls.wait(ctx, key, l)
	if sent || ctx.Err() != nil || err == nil && enough(v) {
		return v, err
	}
	l, _ = ls.join(ctx, key, ask)
	return ls.wait(ctx, key, l)
}

// join returns the listing on its way, or sends one.
func (ls *listings) join(
	ctx context.Context, key listingKey, ask func(context.Context) (view, error),
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

func (ls *listings) run(ctx context.Context, key listingKey, l *sharedListing, ask func(context.Context) (view, error)) {
	defer close(l.done)
	defer l.cancel()
	l.view, l.err = ask(ctx)
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

func (ls *listings) wait(ctx context.Context, key listingKey, l *sharedListing) (view, error) {
	select {
	case <-l.done:
		return l.view, l.err
	case <-ctx.Done():
		ls.leave(key, l)
		return view{}, ctx.Err()
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

// add adds an attempt by its node's name. It is removed at its grant or its end.
func (ls *listings) add(name string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.granted[name] = nil
}

// remove removes the attempt. If it was granted, its successor is notified.
func (ls *listings) remove(name string, granted bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if notify := ls.granted[name]; granted && notify != nil {
		close(notify)
	}
	delete(ls.granted, name)
}

// grantOf returns a channel that is closed when the attempt whose node has the name is granted; nil
// if this client has no such attempt.
func (ls *listings) grantOf(name string) <-chan struct{} {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	notify, ok := ls.granted[name]
	if ok && notify == nil {
		notify = make(chan struct{})
		ls.granted[name] = notify
	}
	return notify
}
