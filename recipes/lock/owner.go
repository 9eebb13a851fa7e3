package lock

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/contender"
)

// An Owner is the identity under which a reentrant lock is held. Owners are comparable. Each
// [NewOwner] is distinct, whatever its name, which is only shown.
type Owner struct{ identity *ownerIdentity }

type ownerIdentity struct {
	name  string
	party string

	mu    sync.Mutex
	holds map[*entry]string // path of the lock by what is held; nil until the first
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
// read/write lock by itself. It covers all clients of the process. It costs no request, so a lease
// may have been lost a moment ago.
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
	o.identity.holds[e] = e.lock.path
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
