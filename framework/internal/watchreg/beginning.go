package watchreg

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

// A Beginning is a Subscription whose read is under way. Its creator has to call Wait.
type Beginning struct {
	registry *Registry
	sub      *Subscription
	send     Send
	read     Read // nil if no read is needed
	armed    bool // the server had the watch before
	shared   bool // other Subscriptions may use the result
	others   bool // the read is another Subscription's
}

// A Send sends a read, which may leave a watch. It calls answered when the reply has arrived, and before an event that
// the server sent later.
type Send func(watch bool, answered func(*proto.Node)) Read

// Begin adds sub to the watch of the key, and sends the read that sets the watch. It registers before
// it reads, so no event can be missed. If the server has the watch already, a plain read is enough;
// it shows whether the server has dropped an event of that watch. If shared is true, an earlier read,
// or a shared read that is under way, replaces the read.
func (r *Registry) Begin(sub *Subscription, key Key, send Send, shared bool) Beginning {
	b := Beginning{registry: r, sub: sub, send: send, shared: shared}
	b.begin(key)
	return b
}

func (b *Beginning) begin(key Key) {
	b.armed = b.registry.join(b.sub, key)
	switch {
	case b.armed && b.shared && b.known():
	case b.shared && !b.armed:
		b.share()
	default:
		b.read = b.send(!b.armed, b.sub.answered)
	}
}

// Wait returns nil once the read has found the state that the Subscription watches. With any other
// outcome it closes the Subscription. If another Subscription's read found no znode, the znode may
// have been created since, so Wait reads again.
func (b *Beginning) Wait(ctx context.Context) error {
	for b.read != nil {
		err := b.await(ctx)
		answered := err == nil || errors.Is(err, zkerr.ErrNoNode)
		if b.armed && answered && b.missed() {
			*b = Beginning{registry: b.registry, sub: b.sub, send: b.send, shared: b.shared}
			b.begin(b.sub.entry.key)
			continue
		}
		if b.sub.entry.key.Kind == Exists && errors.Is(err, zkerr.ErrNoNode) {
			err = nil
		}
		b.record(err)
		if err != nil {
			b.sub.Close()
		}
		return err
	}
	return nil
}

// await waits for the read, and stores what it found.
func (b *Beginning) await(ctx context.Context) error {
	found, err := b.read.Wait(ctx)
	if b.others && err != nil && ctx.Err() == nil && !zkerr.Retryable(err) {
		b.sub.expectOwn()
		found, err = b.send(!b.armed, b.sub.answered).Wait(ctx)
	}
	if found == nil {
		found = new(proto.Node)
	}
	b.sub.found = found
	return err
}

// known gives the Subscription the result of an earlier read if the watch has not fired since. Then
// the session knows of no change, because a server notifies of a change before it replies from the
// new state.
func (b *Beginning) known() bool {
	r, e := b.registry, b.sub.entry
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[e.key] != e || e.found == nil {
		return false
	}
	b.sub.found, b.sub.awaits = e.found, awaitsNothing
	return true
}

// share takes the shared read that is under way, or sends one for others, too.
func (b *Beginning) share() {
	e := b.sub.entry
	b.registry.mu.Lock()
	defer b.registry.mu.Unlock()
	b.sub.awaits = awaitsShared
	if b.others = e.reading != nil; b.others {
		e.reading.Join()
	} else {
		e.shared, e.answered = e.shared+1, false
		r, latest := b.registry, e.shared
		e.reading = b.send(true, func(*proto.Node) { r.answered(e, latest) })
	}
	if e.answered {
		b.sub.awaits = awaitsNothing
	}
	b.read = e.reading
}

// missed reports whether the read shows a change that the watch at the server did not notify of. The
// server has dropped that event, and the watch with it. Then missed ends the entry: the Subscription
// leaves it, and the others fire.
func (b *Beginning) missed() bool {
	r, e := b.registry, b.sub.entry
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[e.key] != e || e.severed || e.key.Kind.mark(b.sub.found) == e.mark {
		return false
	}
	delete(e.subscribers, b.sub)
	delete(r.entries, e.key)
	r.fireLocked(e, Unseen)
	r.settleLocked(e.key.Path)
	return true
}

// record records that the server has the watch, unless that has fired since or the read has failed.
// It keeps the read's result if other Subscriptions may use it. From then on no other Subscription
// shares the read.
func (b *Beginning) record(err error) {
	r, e := b.registry, b.sub.entry
	left := !b.armed && !leftNone(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !b.others && e.reading == b.read {
		e.reading = nil
	}
	if err != nil {
		e.left = e.left || left
		return
	}
	if r.entries[e.key] != e {
		return
	}
	if !b.armed {
		e.mark = e.key.Kind.mark(b.sub.found)
	}
	e.armed, e.reading = true, nil
	if b.shared && e.found == nil {
		e.found = b.sub.found
	}
}

// leftNone reports whether a read that has failed with err has left no watch at the server.
func leftNone(err error) bool {
	return zkerr.IsAny(err, zkerr.ErrNoNode, zkerr.ErrNoAuth, zkerr.ErrNotSent, zkerr.ErrNotConnected)
}
