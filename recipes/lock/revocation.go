package lock

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
)

// A revocation hears the requests to let go of one hold. It belongs to the
// hold's watchdog.
type revocation struct {
	hold  *hold
	heard int32         // version of the znode's data that the latest request made
	calls chan struct{} // capacity 1: requests that come together are one; nil before the first
}

// heed looks for a request in what a watch has read.
func (v *revocation) heed(ctx context.Context, w *framework.Watch) {
	if v.hold.revoked == nil || w == nil {
		return
	}
	st, _ := w.Stat()
	if st.Version == v.heard || !requestsRelease(w.Data(), st) {
		return
	}
	v.heard = st.Version
	v.hold.held.RevocationRequested()
	if v.calls == nil {
		v.calls = make(chan struct{}, 1)
		v.hold.registry.call(v.hold.grant.Client, func() { v.callLoop(ctx) })
	}
	select {
	case v.calls <- struct{}{}:
	default:
	}
}

// callLoop calls the user's function, once per request. The watchdog starts it at
// the first; it ends with the hold, and Client.Close waits for it. The hold's
// release does not: it may wait for that very function, or be called by it.
func (v *revocation) callLoop(ctx context.Context) {
	for {
		select {
		case <-v.calls:
		case <-ctx.Done():
			return
		}
		if l := v.hold.oldest(); l != nil {
			usercall.Guard(v.hold.grant.Client.Logger(), "WithRevocation", func() { v.hold.revoked(l) })
		}
	}
}

// oldest returns the first of the hold's leases, or nil if it has ended.
func (h *hold) oldest() *Lease {
	h.registry.mu.Lock()
	defer h.registry.mu.Unlock()
	if h.err != nil || len(h.leases) == 0 {
		return nil
	}
	return h.leases[0]
}
