package hold

import (
	"context"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/internal/usercall"
)

// A revocation reports requests to release to the user's function. It belongs to the hold's
// monitor, which runs one inspection at a time.
type revocation struct {
	hold  *Hold
	seen  int32         // version of the znode's data after the latest request; used by the inspections alone
	start sync.Once     // of the loop, by the first request
	calls chan struct{} // capacity 1: simultaneous requests are one; nil before start
}

// RequestRelease reports a request to release that was made at another znode of the holder's attempt. The
// hold has a znode of its own, and a function for such requests.
func (h *Hold) RequestRelease() {
	m := h.monitors[0]
	m.revocation.request(m.context())
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
	r.request(ctx)
}

// request has the user's function called. ctx ends with the monitor.
func (r *revocation) request(ctx context.Context) {
	r.hold.Hooks.RevocationRequested()
	r.start.Do(func() {
		r.calls = make(chan struct{}, 1)
		callsOf(r.hold.Client).Go(func() { r.loop(ctx) })
	})
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

// calls are the goroutines of one client that call users' functions. Client.Close waits for them as
// it does for a state listener, so not forever.
type calls struct {
	mu      sync.Mutex
	running sync.WaitGroup // added to under mu
	closed  bool           // Close waits: there are no further calls
	listens sync.Once      // registers await
}

// callsOf returns the calls of c's client.
func callsOf(c *framework.Client) *calls {
	cs := framework.Shared(c, func() *calls { return new(calls) })
	cs.listens.Do(func() { c.OnState(cs.await) })
	return cs
}

// Go runs fn on a new goroutine. It reports false if the client is closing.
func (c *calls) Go(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Go(fn)
	}
	return !c.closed
}

// await is a state listener that waits at the client's end.
func (c *calls) await(change framework.StateChange) {
	if change.To != framework.Closed {
		return
	}
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
}
