package lock

import (
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/queue"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// A hold is one party's stake in a lock: its attempt, and then the znode and the
// leases that share it. With registry.mu held:
//
//   - a hold is in registry.holds from the start of its attempt until it is
//     given up, released or lost; then a new attempt is independent of it;
//   - exactly one goroutine drives an attempt, or, for a moment, none: then
//     those who wait for it have been woken, and one of them takes over;
//   - grant is set once, and leases is not empty from then on until the hold
//     leaves the registry;
//   - err is set once, before lost is closed, and only while there are leases.
type hold struct {
	registry *registry
	side     *side // whose attempt it began as; nil where the lock knows no owners
	key      holdKey
	path     string // of the lock, as its user gave it
	policy   LossPolicy
	revoked  func(*Lease) // told of requests to let go; nil for nobody
	handoff  int          // how often its znode may be passed on in a row; 0 for never

	attempt *queue.Attempt     // only for the goroutine that drives; see side.contender
	seen    *telemetry.Acquire // what telemetry follows of the attempt; likewise

	means []framework.DeleteOption // tell its znode from others at the path; none where the name does
	guard func() framework.TxnOp   // checks that it is that znode; nil where the name tells
	joint *joint                   // what it is made of, if it is a Multi's; else nil
	rest  *rest                    // what the attempt left behind; nil for nothing

	vigil vigil

	// guarded by registry.mu
	live    bool // it is in registry.holds
	driven  bool
	trying  bool          // the attempt waits for nobody
	changed chan struct{} // closed when the driver leaves or the attempt is given up; nil while nobody waits for that
	waiting int           // goroutines of the party that wait for the driver
	grant   *queue.Grant
	breaks  int64           // of the connection at the grant; set with it
	held    *telemetry.Hold // what telemetry follows of the grant; set with it
	leases  []*Lease        // in the order of their locking
	leased  bool            // it has had a lease
	lost    chan struct{}   // closed on loss, once; nil while nobody has asked for it
	err     error

	// guarded by registry.mu, too, and zero without local hand-off
	relay    *relay        // where it has the turn; nil if it has none
	turn     chan struct{} // closed when its turn has come, with passed set first; nil if it has not waited
	passed   *queue.Grant  // what was passed on to it
	numbered bool          // its fence or guard is in use
}

// leaseLocked adds a lease. It needs registry.mu.
func (h *hold) leaseLocked() *Lease {
	l := &Lease{hold: h, first: !h.leased}
	h.leased = true
	h.leases = append(h.leases, l)
	h.held.Leased(len(h.leases))
	return l
}

// grantedLocked takes the grant and has the watchdog started, where that can wait
// once it has something to do: the hold has lasted as long as it may go unwatched, or
// the watch fires. That its session ends is told by the session. It needs registry.mu.
func (h *hold) grantedLocked(g *queue.Grant) {
	h.grant, h.breaks = g, g.Breaks
	if h.passed != nil {
		h.breaks = g.Hold.Breaks()
	}
	if h.relay != nil && h.passed == nil {
		h.relay.since = time.Now()
	}
	g.Hold.OnLost(h.lose) // at once; the watchdog has to be woken first
	h.keepVigilLocked()
}

// turnLocked returns a channel that is closed when the driver leaves, or the attempt is
// given up. It needs registry.mu.
func (h *hold) turnLocked() <-chan struct{} {
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.changed
}

// undrivenLocked takes note that nobody drives the attempt any more: who waits
// for it may take over. It needs registry.mu.
func (h *hold) undrivenLocked() {
	h.driven = false
	h.changedLocked()
}

func (h *hold) changedLocked() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// unwantedLocked takes h out of the live holds if nobody wants its attempt any
// more, and reports whether that is so: then it is to be withdrawn. It needs mu.
func (r *registry) unwantedLocked(h *hold) bool {
	if h.driven || h.waiting > 0 || h.grant != nil || !h.live {
		return false
	}
	r.leaveLocked(h)
	r.quitRelayLocked(h)
	h.changedLocked() // for those of the lock's other side
	return true
}

// abandon ends the driving of h's attempt, which is withdrawn in the background unless
// another goroutine of the party takes it over.
func (h *hold) abandon() {
	h.registry.mu.Lock()
	defer h.registry.mu.Unlock()
	h.undrivenLocked()
	h.side.abandonLocked(h)
}

// leaveLocked takes h out of the live holds. It needs mu.
func (r *registry) leaveLocked(h *hold) {
	if !h.live {
		return
	}
	h.live = false
	delete(r.holds, h.key)
	if h.side.recent == h {
		h.side.recent = nil
	}
}

// soleLocked reports whether l is the only lease. It needs registry.mu.
func (h *hold) soleLocked(l *Lease) bool { return len(h.leases) == 1 && h.leases[0] == l }

// dropLocked takes a lease off h, and reports whether it was the last.
func (r *registry) dropLocked(h *hold, l *Lease) (last bool) {
	if n := len(h.leases) - 1; n >= 0 && h.leases[n] == l { // most are released in reverse
		h.leases[n] = nil
		h.leases = h.leases[:n]
	} else if i := slices.Index(h.leases, l); i >= 0 {
		h.leases = slices.Delete(h.leases, i, i+1)
	}
	if len(h.leases) > 0 {
		return false
	}
	r.leaveLocked(h)
	if h.err != nil {
		r.lost[h.key] = slices.DeleteFunc(r.lost[h.key], func(other *hold) bool { return other == h })
		if len(r.lost[h.key]) == 0 {
			delete(r.lost, h.key)
		}
	}
	return true
}
