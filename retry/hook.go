package retry

import (
	"errors"
	"time"
)

// A DoOption configures one call of [Do] or [Value].
type DoOption interface{ doOption() }

// A Failure is a failed attempt that is about to be followed by another one.
type Failure struct {
	Attempt int           // which attempt failed, from 1: also the number of the retry to come
	Err     error         // what it returned
	Wait    time.Duration // how long Do will wait before it tries again, unless ctx ends
}

type onRetry struct{ fn func(Failure) }

// OnRetry makes Do call fn before each wait, to log or to count the retry. It
// runs on Do's goroutine and delays it, so it should be quick; a panic in it is
// Do's. Fn isn't called for the attempt whose error Do returns, unless ctx ends
// during the wait. Several OnRetry are called in the order given. A nil fn is a
// fault that Do returns.
func OnRetry(fn func(Failure)) DoOption { return onRetry{fn} }

func (onRetry) doOption() {}

type hurry struct{ fn func(Failure) <-chan struct{} }

// Hurry makes Do end a wait early, as soon as the channel is closed that fn
// returned for it: for failures whose condition is known to have passed by then.
// A nil channel leaves the wait as it is. Fn is called before each wait and has
// to be quick. A nil fn is a fault that Do returns; of several Hurry the last
// counts.
func Hurry(fn func(Failure) <-chan struct{}) DoOption { return hurry{fn} }

func (hurry) doOption() {}

// hooks is what the options of one call record.
type hooks struct {
	onRetry []func(Failure)
	hurry   func(Failure) <-chan struct{}
	hurries bool // hurry was given
	none    bool // an option was nil
}

func newHooks(opts []DoOption) hooks {
	var h hooks
	for _, o := range opts {
		switch o := o.(type) { // and not by a method: that would cost an allocation
		case onRetry:
			h.onRetry = append(h.onRetry, o.fn)
		case hurry:
			h.hurry, h.hurries = o.fn, true
		case nil:
			h.none = true
		}
	}
	return h
}

func (h hooks) validate() error {
	var faults []error
	for _, fn := range h.onRetry {
		if fn == nil {
			faults = append(faults, faultf("retry: Do: OnRetry: must not be nil"))
		}
	}
	if h.hurries && h.hurry == nil {
		faults = append(faults, faultf("retry: Do: Hurry: must not be nil"))
	}
	if h.none {
		faults = append(faults, faultf("retry: Do: option: must not be nil"))
	}
	return errors.Join(faults...)
}

// retry tells of a failure, and returns what may end the wait that follows it.
func (h hooks) retry(f Failure) (early <-chan struct{}) {
	for _, fn := range h.onRetry {
		fn(f)
	}
	if h.hurry == nil {
		return nil
	}
	return h.hurry(f)
}
