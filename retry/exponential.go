package retry

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Exponential returns a policy of n retries whose waits are random and double
// on average, with full jitter: the wait before retry k, counted from 1, is
// drawn uniformly from 0 to base·2^k. Its mean is base·2^(k-1), and its floor is
// 0, so that clients which failed together do not return together. A bound
// beyond the largest Duration is that Duration, whatever n is. Base must be
// positive and n not negative.
func Exponential(base time.Duration, n int, opts ...Option) Policy {
	return newExponential(exponential{ctor: "Exponential", base: base, max: math.MaxInt64, n: n}, opts)
}

// BoundedExponential is [Exponential] with waits of at most max: the wait
// before retry k is drawn uniformly from 0 to the smaller of base·2^k and max.
// Max must not be smaller than base.
func BoundedExponential(base, max time.Duration, n int, opts ...Option) Policy {
	return newExponential(exponential{ctor: "BoundedExponential", base: base, max: max, n: n}, opts)
}

// exponential is a number of retries after random waits with a growing bound.
type exponential struct {
	ctor      string // the constructor that the faults name
	base, max time.Duration
	n         int
	options
}

func newExponential(p exponential, opts []Option) Policy {
	p.options = options{rand: rand.Float64}
	for _, o := range opts {
		o.apply(&p.options)
	}
	return p
}

// Validate reports what is wrong with the arguments; see [Validate].
func (p exponential) Validate() error {
	var bound, source error
	if p.max < p.base {
		bound = faultf("retry: %s: max %v: must be at least base %v", p.ctor, p.max, p.base)
	}
	if p.rand == nil {
		source = faultf("retry: %s: WithRand: must not be nil", p.ctor)
	}
	return errors.Join(positive(p.ctor, "base", p.base), bound, notNegativeCount(p.ctor, p.n), source)
}

// NewBackOff implements [Policy]. Under an invalid policy it allows no retry.
func (p exponential) NewBackOff() backoff.BackOff {
	return limited(p, &jittered{policy: p}, p.n)
}

// jittered is the waits of one operation under an exponential policy.
type jittered struct {
	policy exponential // immutable, valid
	bound  time.Duration
}

// NextBackOff implements [backoff.BackOff].
func (b *jittered) NextBackOff() time.Duration {
	b.bound = doubled(max(b.bound, b.policy.base), b.policy.max)
	return fraction(b.policy.rand(), b.bound)
}

// Reset implements [backoff.BackOff].
func (b *jittered) Reset() { b.bound = 0 }

// doubled returns twice d, or limit if that is less.
func doubled(d, limit time.Duration) time.Duration {
	if d > limit/2 {
		return limit
	}
	return 2 * d
}

// fraction returns the share u of bound, in [0, bound] for any u. If a source of random numbers
// leaves [0, 1), the wait must not be negative. A float64 of this size may also be rounded to
// beyond bound.
func fraction(u float64, bound time.Duration) time.Duration {
	switch share := u * float64(bound); {
	case share >= float64(bound):
		return bound
	case share > 0:
		return time.Duration(share)
	default: // 0, negative or not a number
		return 0
	}
}
