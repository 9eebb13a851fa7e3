package retry

import "sync"

// An Option configures [Exponential] and [BoundedExponential].
type Option interface{ apply(*options) }

// options is what the options record.
type options struct {
	rand func() float64 // uniform in [0, 1); safe for concurrent use
}

type randOption struct{ source func() float64 }

// WithRand makes a policy draw its random numbers from source, which returns
// numbers from [0, 1). The default is the package function Float64 of
// math/rand/v2. A number outside of the range counts as the nearer end of it.
//
// Source need not be safe for concurrent use: all operations under the policy share it, and the
// policy calls it once at a time. It must be safe if other code calls it too, for example another
// policy.
func WithRand(source func() float64) Option { return randOption{source} }

func (o randOption) apply(opts *options) {
	if o.source == nil {
		opts.rand = nil // Validate reports it
		return
	}
	var mu sync.Mutex // held during source alone
	opts.rand = func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return o.source()
	}
}
