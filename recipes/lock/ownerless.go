package lock

import (
	"context"

	"github.com/docent-go/docent/recipes/internal/queue"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// An ownerless is what locks have in common that know no owners: each lease has
// a hold of its own, which nobody can re-enter.
type ownerless struct {
	registry *registry
	kind     string // of the znodes that its leases are held by
	path     string // as its user gave it
	full     string // in the ensemble
	cfg      config
	tel      telemetry.Lock
}

// lease returns the lease of what was granted. set sets what its hold is to have
// besides, before anybody else sees it.
func (o *ownerless) lease(ctx context.Context, seen *telemetry.Acquire, g *queue.Grant, set func(*hold)) *Lease {
	h := &hold{
		registry: o.registry,
		key:      holdKey{path: o.full, kind: o.kind, party: party{owner: NewOwner("")}},
		path:     o.path,
		policy:   o.cfg.lossPolicy,
		revoked:  o.cfg.revoked,
	}
	set(h)
	h.held = seen.Granted(ctx, g.Fence(), g.Hold.Session())
	o.registry.mu.Lock()
	h.grantedLocked(g)
	lease := h.leaseLocked()
	o.registry.mu.Unlock()
	h.check() // a session that ended before the grant could not tell the hold
	return lease
}

// named returns who a call is shown to be made by: the owner that its context
// carries, though it means nothing to the lock.
func named(ctx context.Context) party {
	o, _ := OwnerFromContext(ctx)
	return party{owner: o}
}
