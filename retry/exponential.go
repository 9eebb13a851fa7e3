package retry

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"
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
	return exponential("Exponential", base, math.MaxInt64, n, opts)
}

// BoundedExponential is [Exponential] with waits of at most max: the wait
// before retry k is drawn uniformly from 0 to the smaller of base·2^k and max.
// Max must not be smaller than base.
func BoundedExponential(base, max time.Duration, n int, opts ...Option) Policy {
	return exponential("BoundedExponential", base, max, n, opts)
}

// exponential returns a policy of n retries after random waits with a growing bound, whose faults name the
// constructor.
func exponential(ctor string, base, most time.Duration, n int, opts []Option) Policy {
	first := jittered{base: base, most: most, rand: rand.Float64}
	for _, o := range opts {
		o.apply(&first)
	}
	return &policy{
		errors.Join(
			unless(base > 0, "%s: base %v: must be more than 0", ctor, base),
			unless(most >= base, "%s: max %v: must be at least base %v", ctor, most, base),
			unless(n >= 0, "%s: n %d: must be 0 or more", ctor, n),
			unless(first.rand != nil, "%s: WithRand: must not be nil", ctor)),
		func(time.Time) backoff.BackOff {
			waits := first
			return backoff.WithMaxRetries(&waits, uint64(n))
		},
	}
}

// An Option configures [Exponential] and [BoundedExponential].
type Option interface{ apply(*jittered) }

type randOption func() float64

// WithRand makes a policy draw its random numbers from source, which returns
// numbers from [0, 1). The default is the package function Float64 of
// math/rand/v2. A number outside of the range counts as the nearer end of it.
//
// Source need not be safe for concurrent use: all operations under the policy share it, and the
// policy calls it once at a time. It must be safe if other code calls it too, for example another
// policy.
func WithRand(source func() float64) Option { return randOption(source) }

func (source randOption) apply(b *jittered) {
	if source == nil {
		b.rand = nil // a fault of the policy
		return
	}
	var mu sync.Mutex // held during source alone
	b.rand = func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return source()
	}
}

// jittered is the waits of one operation under an exponential policy.
type jittered struct {
	base, most time.Duration  // immutable
	rand       func() float64 // immutable; uniform in [0, 1); safe for concurrent use
	bound      time.Duration
}

// NextBackOff implements [backoff.BackOff].
func (b *jittered) NextBackOff() time.Duration {
	b.bound = doubled(max(b.bound, b.base), b.most)
	return fraction(b.rand(), b.bound)
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
