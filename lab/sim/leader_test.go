package sim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/docent-go/docent/testing/zkserver"
)

// leaderKinds are what may happen to the front end that leads.
func leaderKinds() []*faultKind {
	kinds := []*faultKind{
		always("isolate the leader", 5, func(env *environment, _ *rand.Rand, _ time.Duration) func() {
			return env.isolateLeader()
		}),
		always("isolate the leader, and elect another at once", 8, func(env *environment, r *rand.Rand, span time.Duration) func() {
			heal := env.isolateLeader()
			pass(upTo(r, span/50))
			env.srv.Elect()
			return heal
		}),
		always("freeze the leader, and elect another at once", 4, func(env *environment, _ *rand.Rand, _ time.Duration) func() {
			leader := env.leader()
			leader.Freeze()
			env.srv.Elect()
			return leader.Thaw
		}),
	}
	for _, k := range kinds {
		k.led = true
	}
	return kinds
}

// isolateLeader cuts the leader off from the others, but not from its clients.
func (env *environment) isolateLeader() (heal func()) {
	leader := env.leader()
	leader.Isolate()
	return leader.Heal
}

// leader returns the front end that leads, or any if none does.
func (env *environment) leader() *zkserver.Frontend {
	if f := env.srv.Leader(); f != nil {
		return f
	}
	return env.srv.Frontend(0)
}

// depose has an ensemble whose leader is isolated and deposed again and again. Each time lasts
// longer than a session, and the leader continues to lead for a while.
func (p *plan) depose() {
	p.frontends, p.leader = 3, 0
	p.timeout = 6 * time.Second
	p.horizon = 20 * p.timeout
	p.faults = nil
	p.insist("isolate the leader, and elect another at once", 4*p.timeout, 5*p.timeout/2)
}

// TestLossBeforeSuccessionOnIsolatedLeader has leaders that are isolated answer from their memory
// while others have been elected. A client that takes such an answer for a proof keeps a lease
// for too long: that deliberate bug is found in the same environment.
func TestLossBeforeSuccessionOnIsolatedLeader(t *testing.T) {
	soundSchedules(t, seedsToFind, (*plan).depose)
}
