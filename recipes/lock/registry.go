package lock

import (
	"sync"

	"github.com/docent-go/docent/framework"
)

// A registry knows all holds of one client's queue locks, so that two values of
// a lock on one path agree about who holds it. It has one mutex for all of their
// state; what is done under it is short and calls nothing outside.
type registry struct {
	mu    sync.Mutex
	holds map[holdKey]*hold   // at most one live hold per key
	lost  map[holdKey][]*hold // lost ones of owners that still have leases, for Unlock to report

	relays map[relayKey]*relay // of mutexes with local hand-off

	calls    sync.WaitGroup // of users' functions, added to under mu
	awaiting sync.Once      // Client.Close has been made to wait for them
	closed   bool           // it waits: there are no further ones; guarded by mu
}

// A holdKey names whose hold of which lock it is.
type holdKey struct {
	path  string // in the ensemble, so that it means the same in every view
	kind  string
	party party
}

// call runs fn, which calls a user's function, on a goroutine of its own.
// Client.Close waits for it, as it does for a state listener: not for ever. It
// reports false where it is too late for that.
func (r *registry) call(c *framework.Client, fn func()) bool {
	r.awaiting.Do(func() { c.OnState(r.awaitCalls) })
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.calls.Go(fn)
	}
	return !r.closed
}

// awaitCalls is a listener whose work at the client's end is to wait.
func (r *registry) awaitCalls(change framework.StateChange) {
	if change.To != framework.Closed {
		return
	}
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.calls.Wait()
}

type registryKey struct{}

// registryOf returns the registry of c's client.
func registryOf(c *framework.Client) *registry {
	return c.Shared(registryKey{}, func() any {
		return &registry{holds: make(map[holdKey]*hold), lost: make(map[holdKey][]*hold), relays: make(map[relayKey]*relay)}
	}).(*registry)
}
