package retry

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Never returns a policy of one attempt and no retry. Do then returns fn's
// error as it is.
func Never() Policy { return times{ctor: "Never"} }

// Once returns a policy of one retry, after wait. Wait must not be negative.
func Once(wait time.Duration) Policy { return times{ctor: "Once", n: 1, wait: wait} }

// Times returns a policy of n retries, each after wait. Neither may be
// negative; Times(0, wait) is Never.
func Times(n int, wait time.Duration) Policy { return times{ctor: "Times", n: n, wait: wait} }

// times is a number of retries after one fixed wait each.
type times struct {
	ctor string // the constructor that the faults name
	n    int
	wait time.Duration
}

// Validate reports what is wrong with the arguments; see [Validate].
func (p times) Validate() error {
	return errors.Join(notNegativeCount(p.ctor, p.n), notNegativeWait(p.ctor, p.wait))
}

// NewBackOff implements [Policy]. Under an invalid policy it allows no retry.
func (p times) NewBackOff() backoff.BackOff {
	return limited(p, backoff.NewConstantBackOff(p.wait), p.n)
}

// Forever returns a policy that retries after wait until fn succeeds or the
// context of Do ends. Wait must be positive: without a pause and without an end
// it would spin.
func Forever(wait time.Duration) Policy { return forever{wait} }

// forever is retries without end.
type forever struct{ wait time.Duration }

// Validate reports what is wrong with the arguments; see [Validate].
func (p forever) Validate() error { return positive("Forever", "wait", p.wait) }

// NewBackOff implements [Policy]. Under an invalid policy it allows no retry.
func (p forever) NewBackOff() backoff.BackOff {
	if p.Validate() != nil {
		return &backoff.StopBackOff{}
	}
	return backoff.NewConstantBackOff(p.wait)
}

func notNegativeCount(ctor string, n int) error {
	if n < 0 {
		return faultf("retry: %s: n %d: must be 0 or more", ctor, n)
	}
	return nil
}

func notNegativeWait(ctor string, wait time.Duration) error {
	if wait < 0 {
		return faultf("retry: %s: wait %v: must be 0 or more", ctor, wait)
	}
	return nil
}

func positive(ctor, arg string, d time.Duration) error {
	if d <= 0 {
		return faultf("retry: %s: %s %v: must be more than 0", ctor, arg, d)
	}
	return nil
}
