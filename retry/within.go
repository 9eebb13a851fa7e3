package retry

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Within returns a policy that retries after wait for as long as the wait ends
// no later than limit after the start of Do. It never begins a wait that would
// end later, but an attempt that began in time may last longer: what bounds an
// attempt is its context. Limit must not be negative; wait must be positive.
//
// For a BackOff that is drawn by hand, limit counts from NewBackOff, and again
// from each Reset.
func Within(limit, wait time.Duration) Policy { return within{limit, wait} }

// within is retries up to a limit of time.
type within struct{ limit, wait time.Duration }

// Validate reports what is wrong with the arguments; see [Validate].
func (p within) Validate() error {
	var limit error
	if p.limit < 0 {
		limit = faultf("retry: Within: limit %v: must be 0 or more", p.limit)
	}
	return errors.Join(limit, positive("Within", "wait", p.wait))
}

// NewBackOff implements [Policy]. Under an invalid policy it allows no retry.
func (p within) NewBackOff() backoff.BackOff { return p.NewBackOffSince(time.Now()) }

// NewBackOffSince is NewBackOff for an operation that began at start.
func (p within) NewBackOffSince(start time.Time) backoff.BackOff {
	if p.Validate() != nil {
		return &backoff.StopBackOff{}
	}
	return &timeLimited{policy: p, start: start}
}

// timeLimited is the waits of one operation under a within policy.
type timeLimited struct {
	policy within // immutable, valid
	start  time.Time
}

// NextBackOff implements [backoff.BackOff].
func (b *timeLimited) NextBackOff() time.Duration {
	// Compared by difference: start plus limit plus wait could overflow.
	if left := b.policy.limit - time.Since(b.start); b.policy.wait > left {
		return backoff.Stop
	}
	return b.policy.wait
}

// Reset implements [backoff.BackOff].
func (b *timeLimited) Reset() { b.start = time.Now() }
