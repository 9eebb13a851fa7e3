package lock

import (
	"context"

	"github.com/docent-go/docent/internal/goid"
)

// An Owner is the identity that a reentrant lock is held under. Owners are
// comparable; each [NewOwner] is distinct, whatever its name, which is only shown.
type Owner struct{ identity *ownerIdentity }

type ownerIdentity struct{ name string }

// NewOwner returns a new identity. name shows in [Participant] and in logs.
func NewOwner(name string) Owner { return Owner{&ownerIdentity{name}} }

// String returns the owner's name.
func (o Owner) String() string {
	if o.identity == nil {
		return ""
	}
	return o.identity.name
}

type ownerContextKey struct{}

// ContextWithOwner returns a context whose calls are made by o, whatever
// goroutine makes them: those goroutines re-enter what any of them holds. It panics if o is the zero Owner.
func ContextWithOwner(ctx context.Context, o Owner) context.Context {
	if o.identity == nil {
		panic("lock: ContextWithOwner with the zero Owner")
	}
	return context.WithValue(ctx, ownerContextKey{}, o)
}

// OwnerFromContext returns the owner that ctx carries, if it carries one.
func OwnerFromContext(ctx context.Context) (Owner, bool) {
	o, ok := ctx.Value(ownerContextKey{}).(Owner)
	return o, ok
}

// A caller is the resolved owner of a call: the Owner that its context carries and, if it carries
// none, the calling goroutine. Goroutine numbers are never used again.
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

// shown returns the caller that a lock without owners shows: the Owner that ctx carries, though it
// means nothing to the lock.
func shown(ctx context.Context) caller {
	o, _ := OwnerFromContext(ctx)
	return caller{owner: o}
}
