package lock

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/goid"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// owners has the entries of all callers of one client's reentrant locks, so two values of a lock on
// one path agree on its holder. Code under its mutex is short and calls nothing outside this
// module.
type owners struct {
	mu      sync.Mutex
	entries map[ownerKey]*entry // at most one for each key

	lost map[ownerKey]*hold.Hold // the latest loss per key, for Unlock; at most maxLost
	aged []ownerKey              // keys of lost, in the order of the losses
}

// maxLost bounds the callers whose losses Unlock remembers. A lease itself always reports its loss.
const maxLost = 1000

// A caller is the resolved owner of a call: the Owner that its context carries and, if it carries
// none, the calling goroutine. The runtime never reuses goroutine numbers.
type caller struct {
	owner     Owner
	goroutine uint64
}

func callerOf(ctx context.Context) caller {
	if o, ok := OwnerFromContext(ctx); ok {
		return caller{owner: o}
	}
	return caller{goroutine: goid.ID()}
}

// party returns the caller's party, as its znodes show it.
func (c caller) party(client *framework.Client) string {
	if c.owner != (Owner{}) {
		return c.owner.Party()
	}
	return contender.PartyOfGoroutine(client, c.goroutine)
}

// An ownerKey identifies the entry of one caller and one lock.
type ownerKey struct {
	path   string // in the ensemble, so that it is the same in every view
	kind   string
	caller caller
}

// An entry is what one caller has of a lock: an attempt, and then a hold. With owners.mu held:
//
//   - an entry is in owners.entries from the start of its attempt until the attempt is withdrawn or
//     the hold ends. After that, a new attempt is independent of it;
//   - exactly one goroutine drives the attempt or, for a moment, none: then its waiters have been
//     woken, and one of them takes over;
//   - hold is set once, with the grant.
type entry struct {
	lock *queueLock // the lock or side of its attempt
	key  ownerKey

	attempt *waitqueue.Attempt // used only by the goroutine that drives
	acq     *telemetry.Acquire // telemetry of the attempt; used only by that goroutine

	// guarded by owners.mu
	live    bool // it is in owners.entries
	driven  bool
	trying  bool             // the attempt waits for no other contender
	outcome chan struct{}    // closed when the driver leaves or the attempt is withdrawn; nil while no goroutine waits
	waiting int              // goroutines of the caller that wait for the outcome
	lockers int              // those of them that call Lock
	grant   *waitqueue.Grant // nil before the grant
	hold    *hold.Hold       // nil before the grant
}

// ownersOf returns the owners of c's client.
func ownersOf(c *framework.Client) *owners {
	return framework.Shared(c, func() *owners {
		return &owners{entries: make(map[ownerKey]*entry), lost: make(map[ownerKey]*hold.Hold)}
	})
}

// outcomeLocked returns a channel that is closed when the driver leaves, or the attempt is withdrawn.
// It needs owners.mu.
func (e *entry) outcomeLocked() <-chan struct{} {
	if e.outcome == nil {
		e.outcome = make(chan struct{})
	}
	return e.outcome
}

// wakeLocked wakes those that wait for the outcome. It needs owners.mu.
func (e *entry) wakeLocked() {
	if e.outcome != nil {
		close(e.outcome)
		e.outcome = nil
	}
}

// undrivenLocked records that no goroutine drives the attempt, so that a waiter may take over. It
// needs owners.mu.
func (e *entry) undrivenLocked() {
	e.driven = false
	e.wakeLocked()
}

// unwantedLocked removes e if no goroutine wants its attempt, and reports whether it did: then the
// attempt has to be withdrawn. It needs mu.
func (o *owners) unwantedLocked(e *entry) bool {
	if e.driven || e.waiting > 0 || e.hold != nil || !e.live {
		return false
	}
	o.removeLocked(e)
	e.wakeLocked() // waiters of the lock's other side
	return true
}

// removeLocked removes e. It needs mu.
func (o *owners) removeLocked(e *entry) {
	if e.live {
		e.live = false
		delete(o.entries, e.key)
		e.lock.latest.CompareAndSwap(e, nil)
		e.key.caller.owner.forget(e)
	}
}

// ended removes e, whose hold has ended, and remembers a loss.
func (o *owners) ended(e *entry, h *hold.Hold, lost error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removeLocked(e)
	if lost == nil {
		return
	}
	if o.lost[e.key] == nil {
		o.aged = append(o.aged, e.key)
	}
	o.lost[e.key] = h
	if len(o.aged) > maxLost {
		delete(o.lost, o.aged[0])
		o.aged[0] = ownerKey{} // append moves the rest when it runs out of space
		o.aged = o.aged[1:]
	}
}

// latest returns the caller's latest lease, also a lost one, or nil.
func (o *owners) latest(key ownerKey) *Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.entries[key]; e != nil && e.hold != nil {
		if _, latest := e.hold.Shares(); latest != nil {
			return (*Lease)(latest)
		}
	}
	if h := o.lost[key]; h != nil {
		if _, latest := h.Shares(); latest != nil {
			return (*Lease)(latest)
		}
		delete(o.lost, key)
		o.aged = slices.DeleteFunc(o.aged, func(k ownerKey) bool { return k == key })
	}
	return nil
}

// count returns the caller's lock count.
func (o *owners) count(key ownerKey) int {
	o.mu.Lock()
	e := o.entries[key]
	granted := e != nil && e.hold != nil
	o.mu.Unlock()
	if !granted {
		return 0
	}
	e.hold.Check()
	if e.hold.Err() != nil {
		return 0
	}
	n, _ := e.hold.Shares()
	return n
}

// granted records the hold of e's attempt, unless the hold has ended already: it was lost, or a user's
// function has released it.
func (o *owners) granted(e *entry, grant *waitqueue.Grant, h *hold.Hold) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e.undrivenLocked()
	if e.live && h.Err() == nil {
		e.grant, e.hold = grant, h
		e.lock.latest.Store(e)
		e.key.caller.owner.record(e)
	} else {
		o.removeLocked(e)
	}
}

// An Owner is the identity under which a reentrant lock is held. Owners are comparable. Each
// [NewOwner] is distinct, whatever its name, which is only shown.
type Owner struct{ identity *ownerIdentity }

type ownerIdentity struct {
	name  string
	party string

	mu    sync.Mutex
	holds map[*entry]string // path of the lock in the ensemble by what is held; nil until the first
}

// NewOwner returns a new identity. [Participant] and logs show the name.
func NewOwner(name string) Owner {
	return Owner{&ownerIdentity{name: name, party: contender.NewParty()}}
}

// maxParty is the greatest length of a party in bytes.
const maxParty = 64

// NewOwnerOfParty returns a new identity that shows the party of another one, such as that of a parent
// process: see [Owner.Party]. The two are distinct owners. A party has 1 to 64 bytes.
func NewOwnerOfParty(party, name string) (Owner, error) {
	if party == "" || len(party) > maxParty {
		return Owner{}, fmt.Errorf("lock: new owner: party of %d bytes: must have 1 to %d", len(party), maxParty)
	}
	return Owner{&ownerIdentity{name: name, party: party}}, nil
}

// Party returns a random id that the owner's znodes show ([lease.Metadata]). By it, a search for
// deadlocks knows which locks of all sessions and processes belong to one owner. It is "" for the
// zero Owner.
func (o Owner) Party() string {
	if o.identity == nil {
		return ""
	}
	return o.identity.party
}

// String returns the owner's name.
func (o Owner) String() string {
	if o.identity == nil {
		return ""
	}
	return o.identity.name
}

// Holds returns the paths of the reentrant locks that the owner holds now, sorted, each side of a
// read/write lock by itself. They are paths in the ensemble, with chroot and namespace, because Holds
// covers all clients of the process. It costs no request, so a lease may have been lost a moment ago.
func (o Owner) Holds() []string {
	if o.identity == nil {
		return nil
	}
	o.identity.mu.Lock()
	defer o.identity.mu.Unlock()
	var paths []string
	for _, path := range o.identity.holds {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// record notes that o holds the lock of e's attempt. A goroutine is no Owner.
func (o Owner) record(e *entry) {
	if o.identity == nil {
		return
	}
	o.identity.mu.Lock()
	defer o.identity.mu.Unlock()
	if o.identity.holds == nil {
		o.identity.holds = make(map[*entry]string)
	}
	o.identity.holds[e] = e.lock.full
}

// forget notes that o does not hold the lock of e's attempt.
func (o Owner) forget(e *entry) {
	if o.identity == nil {
		return
	}
	o.identity.mu.Lock()
	defer o.identity.mu.Unlock()
	delete(o.identity.holds, e)
}

// ContextWithOwner returns a context that makes o the owner of calls, on any goroutine: those
// goroutines re-enter what any of them holds. It panics if o is the zero Owner.
func ContextWithOwner(ctx context.Context, o Owner) context.Context {
	usercall.Require("ctx", ctx != nil)
	if o.identity == nil {
		panic("lock: ContextWithOwner with the zero Owner")
	}
	return context.WithValue(ctx, contender.OwnerKey{}, o)
}

// OwnerFromContext returns the owner that ctx carries, if any.
func OwnerFromContext(ctx context.Context) (Owner, bool) {
	usercall.Require("ctx", ctx != nil)
	o, ok := ctx.Value(contender.OwnerKey{}).(Owner)
	return o, ok
}
