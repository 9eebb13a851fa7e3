package hold

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
)

// RevokeMark is the data of a contender's znode after another client has asked it to release:
// Curator's (org.apache.curator.framework.recipes.locks.Revoker).
const RevokeMark = "__REVOKE__"

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
	if st.Version == r.seen || !RequestsRelease(w.Data(), st) {
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

// RequestsRelease reports whether the data of a contender's znode is a request to release. Data of
// version 0 is the contender's own.
func RequestsRelease(data []byte, st framework.Stat) bool {
	return st.Version != 0 && string(inflated(data)) == RevokeMark
}

// inflated returns the data, uncompressed if necessary: a Curator process that compresses data
// compresses requests too.
func inflated(data []byte) []byte {
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return data
	}
	plain, err := io.ReadAll(io.LimitReader(compressed, int64(len(RevokeMark))+1))
	if err != nil {
		return data
	}
	return plain
}
