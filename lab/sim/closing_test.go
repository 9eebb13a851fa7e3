package sim_test

import (
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// instant is the shortest time after which the effect of a call is looked at.
const instant = time.Microsecond

// closeWatched closes the client, and looks at what it leaves: its leases are over as soon as
// Close has been called, and its session has ended when Close returns.
func (c *client) closeWatched(f *framework.Client) error {
	w := c.w
	connected := f.State() == framework.Connected
	session := f.Session().ID
	w.mu.Lock()
	w.closing[f] = true
	began := w.now()
	w.mu.Unlock()
	soon := time.AfterFunc(instant, func() { w.checkClosing(f) })
	err := f.Close()
	soon.Stop()
	w.checkClosing(f)
	if took := w.now() - began; took > longestClose {
		w.violated(boundedCalls, "Close of %s took %v", c.name, took)
	}
	w.mu.Lock()
	undisturbed := !w.harmedLocked(c, began-w.aftermath())
	w.mu.Unlock()
	if connected && undisturbed {
		w.count("closes with a connection", 1)
		w.checkClosed(c, session)
	}
	return err
}

// checkClosing is the validator of "loss before succession" for a client that is being closed:
// no lease says any more that it is held.
func (w *world) checkClosing(f *framework.Client) {
	w.mu.Lock()
	var leases []*lock.Lease
	for l, t := range w.leases {
		if t.f == f {
			leases = append(leases, l)
		}
	}
	w.mu.Unlock()
	for _, l := range leases {
		w.count("leases at a close", 1)
		if l.Err() == nil {
			w.violated(lossFirst, "Close was called, and the lease of %s says that it is held", nodeOf(l))
		}
	}
}

// checkClosed is the validator of "no orphan" for the session of a client whose Close has
// returned, and that was connected undisturbed.
func (w *world) checkClosed(c *client, session int64) {
	for _, s := range w.srv.Sessions() {
		if s.ID == session {
			w.violated(noGhost, "Close of %s has returned, and its session %v exists", c.name, hex(session))
		}
	}
}
