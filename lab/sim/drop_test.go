package sim_test

import (
	"testing"
	"time"
)

// TestWaitersGoOnAfterDroppedEvents runs schedules in which servers drop events, without any other
// fault. Then only its own read helps a waiter.
func TestWaitersGoOnAfterDroppedEvents(t *testing.T) {
	total := soundSchedules(t, 30, func(p *plan) {
		p.faults, p.horizon = nil, 12*p.timeout
		p.insist("DropEvent", 6*p.timeout, 2*time.Second)
	})
	if total["fault DropEvent"] == 0 {
		t.Error("no event was dropped")
	}
}

// soundSchedules runs schedules that are changed by a function, none of which may violate anything.
func soundSchedules(t *testing.T, n uint64, change func(*plan)) (total map[string]int) {
	t.Helper()
	total = map[string]int{}
	for seed := uint64(1); seed <= n; seed++ {
		p := newPlan(seed)
		change(p)
		env := simulate(t, newEnvironment(p, sound()))
		addCounts(total, env.counts)
		if err := env.err(); err != nil {
			t.Fatalf("seed %d: %v\n\n%s", seed, err, tail(env.trace()))
		}
	}
	return total
}
