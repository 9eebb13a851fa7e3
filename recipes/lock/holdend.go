package lock

import (
	"context"
	"slices"

	"github.com/docent-go/docent/internal/ctxerr"

	"github.com/docent-go/docent/framework"
)

// lose ends the hold and all its leases, for the first cause that is given. The
// znode goes in the background, if it still stands.
func (h *hold) lose(cause error) {
	r := h.registry
	r.mu.Lock()
	if h.err != nil || len(h.leases) == 0 {
		r.mu.Unlock()
		return
	}
	lost := &LostError{Path: h.path, Cause: cause}
	h.err = lost
	r.leaveLocked(h)
	if h.side != nil { // else there is no Unlock that could ask for it
		r.lost[h.key] = append(r.lost[h.key], h)
	}
	if h.lost != nil {
		close(h.lost)
	}
	leases := slices.Clone(h.leases)
	var joined []*hold
	for _, l := range leases {
		if l.joined != nil {
			joined = append(joined, l.joined)
		}
	}
	r.mu.Unlock()
	for _, l := range leases {
		l.endContexts(h.err)
	}
	h.reportLost(lost)
	for _, multi := range joined {
		multi.lose(h.err)
	}
	h.discard()
}

// discard has the znode deleted in the background, if it still stands.
func (h *hold) discard() {
	if h.joint != nil {
		h.joint.discard()
		return
	}
	h.vigil.stop()
	h.grant.Client.Discard(h.grant.Node, h.means...)
	h.reportGivenUp()
	h.leave()
}

// leave ends what outlives the leases.
func (h *hold) leave() {
	h.leaveRelay()
	h.grant.Hold.Release()
}

// release gives the znode back. The deletion goes on in the background where it
// could not be confirmed.
func (h *hold) release(ctx context.Context) error {
	h.stopWatching()
	if h.passOn() {
		h.held.Released(nil)
		return nil
	}
	h.leaveRelay() // the next one here goes to the end of the queue, behind this very znode
	if h.handoff > 0 {
		closeWatch(h.grant.Own)
	}
	err := h.grant.Client.Delete(ctx, h.grant.Node, append(h.means, framework.Guaranteed())...)
	return h.deleted(ctx, err)
}

func (h *hold) stopWatching() {
	if ended := h.vigil.stop(); ended != nil {
		<-ended
	}
}

// deleted ends what outlives the leases, and returns what the end of the
// znode's deletion means for the release.
func (h *hold) deleted(ctx context.Context, err error) (ended error) {
	defer func() { h.held.Released(ended) }()
	h.leave()
	switch {
	case ctxerr.Is(err, framework.ErrNoNode):
		return &LostError{Path: h.path, Cause: ErrNodeDeleted}
	case ctxerr.Is(err, framework.ErrSessionEnded), ctxerr.Is(err, framework.ErrClosed):
		return &LostError{Path: h.path, Cause: err}
	case err != nil:
		return err
	}
	return h.rest.wait(ctx)
}
