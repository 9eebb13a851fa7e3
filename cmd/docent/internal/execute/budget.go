package execute

import (
	"fmt"
	"time"
)

// A Budget divides the end of a lease. With the lease deadline D, the warning is at D - Grace -
// Reserve, and KILL at D - Reserve.
type Budget struct {
	Timeout time.Duration // of the session, as the servers granted it
	Grace   time.Duration // from the warning to KILL
	Reserve time.Duration // from KILL to the deadline, for KILL to take effect
}

// The longest default times.
const (
	maxGrace   = 5 * time.Second
	maxReserve = 500 * time.Millisecond
)

// NewBudget returns the budget for a session timeout and a lease margin. If grace is negative, it
// takes the default. It refuses a grace that leaves less than half of what remains of a lease while
// the connection is healthy.
func NewBudget(timeout, margin, grace time.Duration) (Budget, error) {
	remains := Remains(timeout, margin)
	b := Budget{timeout, grace, min(maxReserve, remains/16)}
	if grace < 0 {
		b.Grace = min(maxGrace, remains/4)
	}
	if largest := remains/2 - b.Reserve; b.Grace > largest {
		return Budget{}, fmt.Errorf("--grace %v: must be at most %v, because the servers granted a session timeout of %v",
			b.Grace, largest, timeout)
	}
	return b, nil
}

// Remains returns how much of a lease remains at any moment of a healthy connection. Proofs are
// between an eighth and a quarter of the timeout apart.
func Remains(timeout, margin time.Duration) time.Duration { return timeout - margin - timeout/4 }

// Warning returns when the group gets the stop signal.
func (b Budget) Warning(deadline time.Time) time.Time {
	return deadline.Add(-b.Grace - b.Reserve)
}

// Kill returns when the group gets KILL.
func (b Budget) Kill(deadline time.Time) time.Time { return deadline.Add(-b.Reserve) }

// Ample reports whether CMD may start: the warning must be an eighth of the timeout away, or else a
// slow start alone would be warned.
func (b Budget) Ample(now, deadline time.Time) bool {
	return !b.Warning(deadline).Before(now.Add(b.Timeout / 8))
}
