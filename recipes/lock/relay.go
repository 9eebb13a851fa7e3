package lock

import (
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/queue"
)

// A relay is where the parties of one client wait for their turn at a mutex with
// local hand-off. Whoever has the turn has the lock's znode, or makes an attempt
// for one; the others have none. It exists as long as somebody has the turn.
type relay struct {
	registry *registry
	key      relayKey
	holder   *hold   // who has the turn
	waiting  []*hold // for their turn
	passes   int     // how often the present znode was passed on

	// Of the present znode, however often it is passed on.
	since     time.Time   // when it was granted
	timer     *time.Timer // for the watch on it; nil where nobody needed one yet
	unwatched bool        // there should be one by now
}

// A relayKey names whose relay it is: leases mean paths in their own view of the
// client, so there is one for each view of a lock.
type relayKey struct {
	path  string // of the lock, in the ensemble
	given string // as the view has it
}

func (h *hold) relayKey() relayKey { return relayKey{h.key.path, h.path} }

// left returns how much is left of the time d since the znode was granted.
func (rl *relay) left(d time.Duration) time.Duration { return max(0, d-time.Since(rl.since)) }

// awaitLocked has the holder's watchdog started when the znode has gone unwatched for
// the time d since it was granted, whoever is the holder then. It needs mu.
func (rl *relay) awaitLocked(d time.Duration) {
	if rl.timer == nil {
		rl.timer = time.AfterFunc(rl.left(d), rl.watch)
	}
}

func (rl *relay) watch() {
	rl.registry.mu.Lock()
	rl.unwatched = true // for who is granted next, if nobody is at this moment
	h := rl.holder
	waits := h.relay == rl && h.vigil.relayed
	rl.registry.mu.Unlock()
	if waits {
		h.vigil.keep(0)
	}
}

// takeTurn takes the turn for h, or puts it behind those who wait for that, unless it
// waits already. It reports whether h has to wait.
func (r *registry) takeTurn(h *hold, try bool) (waits bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rl := r.relays[h.relayKey()]
	switch {
	case h.relay != nil || h.attempt != nil && h.attempt.Entered():
		return false, nil
	case rl == nil:
		rl = &relay{registry: r, key: h.relayKey(), holder: h}
		r.relays[rl.key] = rl
		h.relay = rl
		return false, nil
	case try:
		return false, ErrHeld
	case h.turn != nil: // another goroutine of the party has waited
		return true, nil
	}
	h.turn = make(chan struct{})
	rl.waiting = append(rl.waiting, h)
	return true, nil
}

// quitRelayLocked takes h, which nobody wants any more, out of its relay: it gives back the
// turn, if it has that. It needs mu; what is to be done with a znode is left to the client.
func (r *registry) quitRelayLocked(h *hold) {
	rl := r.relays[h.relayKey()]
	switch {
	case h.passed != nil:
		r.returnLocked(h)
	case h.relay != nil:
		r.leaveRelayLocked(h, nil)
	case h.turn != nil && rl != nil:
		rl.waiting = slices.DeleteFunc(rl.waiting, func(other *hold) bool { return other == h })
	}
}

// leaveRelayLocked gives h's turn, if it has that, to the next one, together with the
// grant, nil for none. There has to be a next one for a grant. It needs mu.
func (r *registry) leaveRelayLocked(h *hold, grant *queue.Grant) {
	rl := h.relay
	if rl == nil {
		return
	}
	h.relay, h.passed = nil, nil
	rl.passes++
	if grant == nil {
		rl.forgetLocked()
	}
	if len(rl.waiting) == 0 {
		delete(r.relays, rl.key)
		return
	}
	next := rl.waiting[0]
	rl.waiting = slices.Delete(rl.waiting, 0, 1)
	next.relay, next.passed, rl.holder = rl, grant, next
	close(next.turn)
}

// forgetLocked forgets the znode. It needs mu.
func (rl *relay) forgetLocked() {
	if rl.timer != nil {
		rl.timer.Stop()
	}
	rl.passes, rl.timer, rl.unwatched = 0, nil, false
}

// takesLocked reports whether there is somebody that the grant may be passed on to.
// It needs the registry's mu.
func (rl *relay) takesLocked(grant *queue.Grant) bool {
	if len(rl.waiting) == 0 || !untouched(grant.Own) {
		return false
	}
	// Who loses the lock with the connection would lose it at once.
	return rl.waiting[0].policy != OnSuspend || grant.Client.State() == framework.Connected
}

// untouched reports whether nobody is known to have written to what w watches, as
// to ask its holder to let go, or to have deleted it.
func untouched(w *framework.Watch) bool {
	if w == nil {
		return true
	}
	st, _ := w.Stat()
	return w.Event() == 0 && st.Version == 0
}
