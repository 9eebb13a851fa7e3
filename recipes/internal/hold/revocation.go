package hold

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/internal/usercall"
)

// A revocation reports requests to release to the user's function. It belongs to the hold's
// monitor, which runs one inspection at a time.
type revocation struct {
	hold  *Hold
	seen  int32         // version of the znode's data after the latest request
	calls chan struct{} // capacity 1: simultaneous requests are one; nil before the first
}

// observe checks the data that a watch has read for a request. ctx ends with the monitor.
func (r *revocation) observe(ctx context.Context, w *framework.Watch) {
	if r.hold.Revoked == nil {
		return
	}
	st, _ := w.Stat()
	if st.Version == r.seen || !queuenode.RequestsRelease(w.Data(), st.Version) {
		return
	}
	r.seen = st.Version
	r.hold.Hooks.RevocationRequested()
	if r.calls == nil {
		r.calls = make(chan struct{}, 1)
		callsOf(r.hold.Client).Go(func() { r.loop(ctx) })
	}
	select {
	case r.calls <- struct{}{}:
	default:
	}
}

// loop calls the user's function, once per request. The first request starts it. It ends with the
// hold, and Client.Close waits for it. The release does not, because the function may call or await
// it.
func (r *revocation) loop(ctx context.Context) {
	for {
		select {
		case <-r.calls:
		case <-ctx.Done():
			return
		}
		if oldest := r.hold.oldest(); oldest != nil {
			usercall.Guard(r.hold.Client.Logger(), "WithRevocation", func() { r.hold.Revoked(oldest) })
		}
	}
}

// oldest returns the oldest share, or nil if the hold has ended.
func (h *Hold) oldest() *Share {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil || len(h.shares) == 0 {
		return nil
	}
	return h.shares[0]
}
