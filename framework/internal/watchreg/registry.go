package watchreg

import (
	"context"
	"sync"

	"github.com/docent-go/docent/internal/proto"
)

// A Registry has a session's Subscriptions. Its methods may be called concurrently and don't block.
type Registry struct {
	spawn  func(fn func())
	remove func(path string) Removal
	most   int // idle paths

	mu      sync.Mutex // guards following; never held across a request or a callback
	entries map[Key]*entry
	idle
}

// An entry is one watch at the server, valid or being set. It leaves the map when that watch has
// fired, was removed, or its connection is lost. Until then every new Subscription uses it.
type entry struct {
	key         Key
	subscribers map[*Subscription]struct{}
	armed       bool        // the server has the watch
	left        bool        // the server may have it: no caller waited for the reply to the read
	severed     bool        // the server had it on a lost connection; FireAll follows
	mark        mark        // the state that the arming read found
	found       *proto.Node // the result of a shared read, never changed; may be nil

	reading  Read // the shared read that is to set the watch, while it is under way; else nil
	shared   int  // how many shared reads there were; callers may have left earlier ones
	answered bool // the reply to the latest shared read has arrived
}

// A Read is a read of a znode that is under way. Reads are compared by ==.
type Read interface {
	// Wait returns the read's outcome. ctx bounds the wait only. The errors are those of package
	// zkerr; if ctx ends first, the error wraps ctx's error.
	Wait(ctx context.Context) (*proto.Node, error)
	// Join adds a caller of Wait. When the contexts of all have ended, the read is not sent any more.
	Join()
}

// New returns an empty registry. spawn runs a function of AfterFire on a goroutine of its own. remove sends a
// request that removes all watches of a path from the server, and returns nil if there is no connection. It
// is called with the registry's lock held, and must neither block nor call the registry. When the request has
// ended, unless it was withdrawn, Removed is to be called.
func New(spawn func(fn func()), remove func(path string) Removal) *Registry {
	return &Registry{spawn: spawn, remove: remove, most: maxIdle, entries: make(map[Key]*entry), idle: newIdle()}
}

// Armed returns how many watches the server has.
func (r *Registry) Armed() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		if e.armed {
			n++
		}
	}
	return n
}

// Sever records that the connection on which the server kept the watches is lost. Call it before
// anything is sent on the next connection, and then FireAll.
func (r *Registry) Sever() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		e.severed = true
	}
	r.idle = newIdle()
}

// Fire notifies the Subscriptions that a server's event concerns, in the order of the connection, or those of all kinds
// with Unseen if their watch at the server is gone for another reason.
func (r *Registry) Fire(event Event, path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kind := range event.firedKinds() {
		key := Key{kind, path}
		if e := r.entries[key]; e != nil {
			delete(r.entries, key)
			r.fireLocked(e, event)
		}
	}
	r.settleLocked(path)
}

// FireAll notifies all Subscriptions with Reconnected when the connection on which the server kept their
// watches is lost. Removals may be under way on the next connection already; Sever forgot those of the lost one.
func (r *Registry) FireAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		r.fireLocked(e, Reconnected)
	}
	clear(r.entries)
	clear(r.paths)
}

// fireLocked notifies the Subscriptions of e. It needs mu.
func (r *Registry) fireLocked(e *entry, event Event) {
	for sub := range e.subscribers {
		sub.fireLocked(sub.meaning(event))
	}
	clear(e.subscribers)
}

// answered records that the reply to the nth shared read of e has arrived. It says nothing of a later one.
func (r *Registry) answered(e *entry, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n != e.shared {
		return
	}
	e.answered = true
	for sub := range e.subscribers {
		if sub.awaits == awaitsShared {
			sub.awaits = awaitsNothing
		}
	}
}

// join adds sub, whose read follows. armed reports whether the server has the watch already.
func (r *Registry) join(sub *Subscription, key Key) (armed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.needLocked(key.Path)
	e := r.entries[key]
	if e == nil {
		e = &entry{key: key, subscribers: make(map[*Subscription]struct{})}
		r.entries[key] = e
	}
	*sub = Subscription{registry: r, entry: e, fired: make(chan struct{}), awaits: awaitsOwn}
	e.subscribers[sub] = struct{}{}
	return e.armed
}
