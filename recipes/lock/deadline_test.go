package lock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/recipes/lock"
)

// TestLeaseDeadline compares what leases of all makes say with the moment of their loss.
func TestLeaseDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		leases := map[string]*lock.Lease{
			"mutex":  mustLock(t, newMutex(t, c, "/deadline/mutex")),
			"unfair": mustLock(t, newUnfairMutex(t, c, "/deadline/unfair")),
			"multi":  mustLock(t, newMulti(t, newMutex(t, c, "/deadline/a"), newMutex(t, c, "/deadline/b"))),
			"local":  mustLock(t, newLocal(t, newMutex(t, c, "/deadline/local"), 2)),
		}
		first := make(map[string]time.Time)
		for name, l := range leases {
			first[name] = l.Deadline()
		}
		await(time.Minute)
		for name, l := range leases {
			if d := l.Deadline(); !d.After(first[name]) || !d.After(time.Now()) {
				t.Errorf("%s: deadline %v a minute after %v, at %v", name, d, first[name], time.Now())
			}
		}
		srv.Refuse()
		srv.Cut()
		deadlines := make(map[string]time.Time)
		for name, l := range leases {
			deadlines[name] = l.Deadline()
		}
		for name, l := range leases {
			<-l.Lost()
			if now := time.Now(); !now.Equal(deadlines[name]) {
				t.Errorf("%s: lost at %v, its deadline was %v", name, now, deadlines[name])
			}
		}
		srv.Accept()
	})
}
