package watchreg

import (
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// A Subscription fires once, when the watched state has changed or may have changed. [Registry.Begin]
// begins it. Its methods may be called concurrently once [Beginning.Wait] has returned nil.
type Subscription struct {
	registry *Registry
	entry    *entry
	fired    chan struct{} // closed once; event is set before
	event    Event
	awaits   awaitedReply // guarded by registry.mu
	found    *proto.Node  // never changed, because Subscriptions of one entry share it
	after    func()       // of AfterFire; guarded by registry.mu
	limit    *time.Timer  // of FireWithin, nil for none; guarded by registry.mu
}

// An awaitedReply is the reply that a Subscription still awaits.
type awaitedReply int

const (
	awaitsNothing awaitedReply = iota
	awaitsOwn                  // a read of its own
	awaitsShared               // the entry's
)

// Fired returns a channel that is closed when the Subscription fires.
func (sub *Subscription) Fired() <-chan struct{} { return sub.fired }

// Event returns why the Subscription fired; it is 0 before that.
func (sub *Subscription) Event() Event {
	select {
	case <-sub.fired:
		return sub.event
	default:
		return 0
	}
}

// Found returns what the read of the Subscription found. Its caller must not change it.
func (sub *Subscription) Found() *proto.Node { return sub.found }

// AfterFire calls fn on a goroutine of its own once the Subscription has fired. If it has fired
// already, fn is called at once. If stop returns true, fn is not called. stop returns false if fn was
// started before, and from its second call on. There is one fn at a time.
func (sub *Subscription) AfterFire(fn func()) (stop func() bool) {
	r := sub.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if sub.Event() != 0 {
		r.spawn(fn) // ends, and is waited for, as the caller of AfterFire decides
		return func() bool { return false }
	}
	sub.after = fn
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		stopped := sub.after != nil
		sub.after = nil
		return stopped
	}
}

// FireWithin fires the Subscription alone with the event after d, unless it has fired or is closed
// before; the watch's next Subscription then reads again. From its second call on it has no effect.
func (sub *Subscription) FireWithin(d time.Duration, event Event) {
	r := sub.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if sub.limit != nil || !sub.subscribedLocked() {
		return
	}
	sub.limit = time.AfterFunc(d, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if sub.subscribedLocked() {
			sub.entry.found = nil
			sub.fireLocked(event)
			r.leaveLocked(sub)
		}
	})
}

// subscribedLocked reports whether the Subscription has neither fired nor been closed. It needs
// registry.mu.
func (sub *Subscription) subscribedLocked() bool {
	_, subscribed := sub.entry.subscribers[sub]
	return subscribed
}

// answered records that the reply to the Subscription's own read has arrived.
func (sub *Subscription) answered(*proto.Node) {
	sub.registry.mu.Lock()
	defer sub.registry.mu.Unlock()
	sub.awaits = awaitsNothing
}

// expectOwn records that a read of its own follows.
func (sub *Subscription) expectOwn() {
	sub.registry.mu.Lock()
	defer sub.registry.mu.Unlock()
	sub.awaits = awaitsOwn
}

// meaning returns what a server's event means to the Subscription. An event that arrives before the reply to its
// read is of an earlier watch, and of a change that came before the state that the read finds: an old deletion
// says nothing of a znode that was created since. It needs registry.mu.
func (sub *Subscription) meaning(event Event) Event {
	if sub.awaits != awaitsNothing && event <= ChildrenChanged {
		return Unseen
	}
	return event
}

// fireLocked needs registry.mu.
func (sub *Subscription) fireLocked(event Event) {
	sub.event = event
	close(sub.fired)
	sub.stopLocked()
	if sub.after != nil {
		sub.registry.spawn(sub.after)
		sub.after = nil
	}
}

// stopLocked ends the wait of FireWithin. It needs registry.mu.
func (sub *Subscription) stopLocked() {
	if sub.limit != nil {
		sub.limit.Stop()
	}
}

// Valid reports whether the Subscription has neither fired nor been closed, and its connection is not
// lost.
func (sub *Subscription) Valid() bool {
	sub.registry.mu.Lock()
	defer sub.registry.mu.Unlock()
	return sub.subscribedLocked() && !sub.entry.severed
}

// Close ends the Subscription: it will not fire any more. It may be called several times.
func (sub *Subscription) Close() {
	r := sub.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	sub.stopLocked()
	r.leaveLocked(sub)
}
