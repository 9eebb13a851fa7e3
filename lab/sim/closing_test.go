package sim_test

import (
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// instant is the shortest time after which the effect of a call is looked at.
const instant = time.Microsecond

// longestClose is how long Close may take: see framework.Client.Close.
const longestClose = 20 * time.Second

// closeWatched closes the client, and looks at what it leaves: its leases are over as soon as
// Close has been called, and its session has ended when Close returns.
func (c *client) closeWatched(f *framework.Client) error {
	env := c.env
	connected := f.State() == framework.Connected
	session := f.Session().ID
	env.mu.Lock()
	env.closing[f] = true
	began := env.now()
	env.mu.Unlock()
	soon := time.AfterFunc(instant, func() { env.checkClosing(f) })
	err := f.Close()
	soon.Stop()
	env.checkClosing(f)
	if took := env.now() - began; took > longestClose {
		env.violated(boundedCalls, "Close of %s took %v", c.name, took)
	}
	if connected && !env.harmed(c, began-env.aftermath()) {
		env.count("closes with a connection", 1)
		env.checkClosed(c, session)
	}
	return err
}

// checkClosing is the validator of "loss before succession" for a client that is being closed:
// no lease says any more that it is held.
func (env *environment) checkClosing(f *framework.Client) {
	env.mu.Lock()
	var leases []*lock.Lease
	for l, t := range env.leases {
		if t.f == f {
			leases = append(leases, l)
		}
	}
	env.mu.Unlock()
	for _, l := range leases {
		env.count("leases at a close", 1)
		if l.Err() == nil {
			env.violated(lossFirst, "Close was called, and the lease of %s says that it is held", nodeOf(l))
		}
	}
}

// checkClosed is the validator of "no orphan" for the session of a client whose Close has
// returned, and that was connected undisturbed.
func (env *environment) checkClosed(c *client, session int64) {
	for _, s := range env.srv.Sessions() {
		if s.ID == session {
			env.violated(noOrphan, "Close of %s has returned, and its session %v exists", c.name, hex(session))
		}
	}
}
