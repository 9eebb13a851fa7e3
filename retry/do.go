package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/internal/cause"
)

// Do calls fn until it returns nil, returns an error marked with [Permanent],
// p allows no further retry, or ctx ends. It returns as soon as one of these
// holds, and never while fn runs: fn is given ctx and has to obey it.
//
// If ctx is done before the first attempt, fn is not called and the error is that of ctx. If it
// ends during a wait or a failing attempt, no further attempt begins. The error then matches both
// ctx.Err() and the last attempt's error. If the cause of ctx is another error than ctx.Err(), the
// error shows it, and matches it too, unless it is an error of docent's or of another context.
//
// The errors, each with its condition, are listed in the package's
// documentation. Do panics if ctx is nil. It may be called concurrently.
func Do(ctx context.Context, p Policy, fn func(context.Context) error, opts ...DoOption) error {
	if ctx == nil {
		panic("retry: Do: ctx: must not be nil")
	}
	if err := checked(p, fn, opts); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return cause.Join(ctx, ctx.Err())
	}

	start := time.Now()
	err := fn(ctx)
	if err == nil {
		return nil
	}
	return cause.Join(ctx, again(ctx, start, p, fn, newHooks(opts), err))
}

// checked returns the faults of the arguments of Do. It is a function of its own so that fn, which may wait long,
// does not have its frame below it.
func checked(p Policy, fn func(context.Context) error, opts []DoOption) error {
	err := errors.Join(Validate(p), newHooks(opts).validate())
	if fn == nil {
		err = errors.Join(err, faultf("retry: Do: fn: must not be nil"))
	}
	return err
}

// Value is [Do] for an fn that returns a value. It returns the value of the
// attempt that succeeded, and the zero T with any error.
func Value[T any](ctx context.Context, p Policy, fn func(context.Context) (T, error), opts ...DoOption) (T, error) {
	var v, zero T
	var attempt func(ctx context.Context) error
	if fn != nil {
		attempt = func(ctx context.Context) (err error) {
			v, err = fn(ctx)
			return err
		}
	}
	err := Do(ctx, p, attempt, opts...)
	if err != nil {
		return zero, err
	}
	return v, nil
}

// again is the rest of Do once the first attempt has failed with err. It is a
// function of its own so that an operation which succeeds at once pays for
// nothing that only a retry needs.
func again(ctx context.Context, start time.Time, p Policy, fn func(context.Context) error, hooks hooks, err error) error {
	waits := draw(p, start)
	for attempt := 1; ; attempt++ {
		if ok, unmarked := permanent(err); ok {
			return unmarked
		}
		if ctx.Err() != nil {
			return endedDuring(ctx, attempt, err)
		}
		wait := waits.NextBackOff()
		if wait < 0 {
			return exhausted(attempt, time.Since(start), err)
		}
		early := hooks.retry(Failure{Attempt: attempt, Err: err, Wait: wait})
		if !sleep(ctx, wait, early) {
			return endedAfter(ctx, attempt, err)
		}
		if err = fn(ctx); err == nil {
			return nil
		}
	}
}

// A since is a policy that can count from the start of the operation: this package's, and what framework puts around them.
type since interface {
	NewBackOffSince(start time.Time) backoff.BackOff
}

// draw returns p's waits for an operation that began at start.
func draw(p Policy, start time.Time) backoff.BackOff {
	if p, ok := p.(since); ok {
		return p.NewBackOffSince(start)
	}
	waits := p.NewBackOff()
	if waits == nil {
		panic(fmt.Sprintf("retry: %T.NewBackOff returned nil", p))
	}
	return waits
}

// sleep waits for d to pass, or for early, and reports whether ctx lasted that
// long. A ctx that ended at the very moment did not: no attempt begins under a
// dead one.
func sleep(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	if d == 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-early:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// exhausted returns the error of an operation whose policy allows no further
// retry. Where it allowed none at all, there is nothing to add to err.
func exhausted(attempts int, elapsed time.Duration, err error) error {
	if attempts == 1 {
		return err
	}
	return &ExhaustedError{Attempts: attempts, Elapsed: elapsed, Err: err}
}

// endedAfter returns the error of an operation whose ctx ended after its last
// attempt had failed with err: two facts, even if err is an error of the same
// kind, such as a deadline of the attempt's own.
func endedAfter(ctx context.Context, attempt int, err error) error {
	return fmt.Errorf("retry: %w, after attempt %d: %w", ctx.Err(), attempt, err)
}

// endedDuring returns the error of an operation whose ctx ended while its last
// attempt ran, which then failed with err. If err tells of ctx already, it is that.
func endedDuring(ctx context.Context, attempt int, err error) error {
	if errors.Is(err, ctx.Err()) {
		return err
	}
	return endedAfter(ctx, attempt, err)
}
