package lock

import "context"

// An Owner is the identity under which a reentrant lock is held. Owners are comparable. Each
// [NewOwner] is distinct, whatever its name, which is only shown.
type Owner struct{ identity *ownerIdentity }

type ownerIdentity struct{ name string }

// NewOwner returns a new identity. [Participant] and logs show the name.
func NewOwner(name string) Owner { return Owner{&ownerIdentity{name}} }

// String returns the owner's name.
func (o Owner) String() string {
	if o.identity == nil {
		return ""
	}
	return o.identity.name
}

type ownerContextKey struct{}

// ContextWithOwner returns a context that makes o the owner of calls, on any goroutine: those
// goroutines re-enter what any of them holds. It panics if o is the zero Owner.
func ContextWithOwner(ctx context.Context, o Owner) context.Context {
	if o.identity == nil {
		panic("lock: ContextWithOwner with the zero Owner")
	}
	return context.WithValue(ctx, ownerContextKey{}, o)
}

// OwnerFromContext returns the owner that ctx carries, if any.
func OwnerFromContext(ctx context.Context) (Owner, bool) {
	o, ok := ctx.Value(ownerContextKey{}).(Owner)
	return o, ok
}
