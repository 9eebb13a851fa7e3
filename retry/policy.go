package retry

import "github.com/cenkalti/backoff/v4"

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
	if v, ok := p.(validator); ok {
		return v.Validate()
	}
	return nil
}

// A validator is a policy that can tell whether its arguments are in bounds.
type validator interface {
	Validate() error
}

// limited returns waits cut off after n retries. An invalid policy gets no
// retry at all: its n may be negative and its waits may be anything.
func limited(p validator, waits backoff.BackOff, n int) backoff.BackOff {
	if p.Validate() != nil {
		return &backoff.StopBackOff{}
	}
	return backoff.WithMaxRetries(waits, uint64(n))
}
