package sim_test

import (
	"testing"
	"time"
)

// TestWaitersGoOnAfterDroppedEvents runs schedules in which servers drop events, without any other
// fault. Then only its own read helps a waiter.
func TestWaitersGoOnAfterDroppedEvents(t *testing.T) {
	const schedules = 30
	total := map[string]int{}
	for seed := uint64(1); seed <= schedules; seed++ {
		p := newPlan(seed)
		p.faults, p.horizon = nil, 12*p.timeout
		p.insist("DropEvent", 6*p.timeout, 2*time.Second)
		env := simulate(t, newEnvironment(p, bug{}))
		addCounts(total, env.counts)
		if err := env.err(); err != nil {
			t.Fatalf("seed %d: %v\n\n%s", seed, err, tail(env.trace()))
		}
	}
	if total["fault DropEvent"] == 0 {
		t.Error("no event was dropped")
	}
}
