package retry

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// A Policy says how often, and after which waits, an operation is retried.
//
// The policies of this package also have a method Validate() error, which
// reports what is wrong with the arguments of their constructor; see
// [Validate]. A policy of one's own may have that method too.
type Policy interface {
	// NewBackOff returns the waits of one operation, in their initial state;
	// never nil. A negative wait means stop. The result belongs to the caller
	// and need not be safe for concurrent use; NewBackOff itself must be.
	//
	// Do calls it after the first failure: a limit of time that is kept inside
	// the BackOff counts from there. Only Within counts from the start of Do.
	NewBackOff() backoff.BackOff
}

// Validate returns nil if [Do] would accept p. Otherwise it returns all faults of p, joined, each
// with the argument's name, value and bound. A nil p is a fault; a p without a method Validate()
// error is taken to be valid. The faults that this package finds are [ErrInvalid].
func Validate(p Policy) error {
	if p == nil {
		return faultf("retry: policy nil: must not be nil")
	}
	if v, ok := p.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

// A policy is one of this package's. It is immutable.
type policy struct {
	faults error                                 // of the constructor's arguments; nil for none
	waits  func(start time.Time) backoff.BackOff // of an operation that began at start
}

// Validate reports what is wrong with the arguments; see [Validate].
func (p *policy) Validate() error { return p.faults }

// NewBackOff implements [Policy]. Under an invalid policy it allows no retry: its n may be negative and
// its waits may be anything.
func (p *policy) NewBackOff() backoff.BackOff { return p.NewBackOffSince(time.Now()) }

// NewBackOffSince is NewBackOff for an operation that began at start.
func (p *policy) NewBackOffSince(start time.Time) backoff.BackOff {
	if p.faults != nil {
		return &backoff.StopBackOff{}
	}
	return p.waits(start)
}

// Never returns a policy of one attempt and no retry. Do then returns fn's
// error as it is.
func Never() Policy { return times("Never", 0, 0) }

// Once returns a policy of one retry, after wait. Wait must not be negative.
func Once(wait time.Duration) Policy { return times("Once", 1, wait) }

// Times returns a policy of n retries, each after wait. Neither may be
// negative; Times(0, wait) is Never.
func Times(n int, wait time.Duration) Policy { return times("Times", n, wait) }

// times returns a policy of n retries after one fixed wait each, whose faults name the constructor.
func times(ctor string, n int, wait time.Duration) Policy {
	return &policy{
		errors.Join(
			unless(n >= 0, "%s: n %d: must be 0 or more", ctor, n),
			unless(wait >= 0, "%s: wait %v: must be 0 or more", ctor, wait)),
		func(time.Time) backoff.BackOff {
			return backoff.WithMaxRetries(backoff.NewConstantBackOff(wait), uint64(n))
		},
	}
}

// Forever returns a policy that retries after wait until fn succeeds or the
// context of Do ends. Wait must be positive: without a pause and without an end
// it would spin.
func Forever(wait time.Duration) Policy {
	return &policy{
		unless(wait > 0, "Forever: wait %v: must be more than 0", wait),
		func(time.Time) backoff.BackOff { return backoff.NewConstantBackOff(wait) },
	}
}

// Within returns a policy that retries after wait for as long as the wait ends
// no later than limit after the start of Do. It never begins a wait that would
// end later, but an attempt that began in time may last longer: what bounds an
// attempt is its context. Limit must not be negative; wait must be positive.
//
// For a BackOff that is drawn by hand, limit counts from NewBackOff, and again
// from each Reset.
func Within(limit, wait time.Duration) Policy {
	return &policy{
		errors.Join(
			unless(limit >= 0, "Within: limit %v: must be 0 or more", limit),
			unless(wait > 0, "Within: wait %v: must be more than 0", wait)),
		func(start time.Time) backoff.BackOff { return &timeLimited{limit, wait, start} },
	}
}

// timeLimited is the waits of one operation up to a limit of time.
type timeLimited struct {
	limit, wait time.Duration
	start       time.Time
}

// NextBackOff implements [backoff.BackOff].
func (b *timeLimited) NextBackOff() time.Duration {
	// Compared by difference: start plus limit plus wait could overflow.
	if left := b.limit - time.Since(b.start); b.wait > left {
		return backoff.Stop
	}
	return b.wait
}

// Reset implements [backoff.BackOff].
func (b *timeLimited) Reset() { b.start = time.Now() }
