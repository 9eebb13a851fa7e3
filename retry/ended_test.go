package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/retry"
)

// endings are the ways in which a context ends after a second and a half.
var endings = map[string]struct {
	begin func(context.Context) (context.Context, context.CancelFunc)
	is    []error // what every error about it matches
	text  string
}{
	"cancelled": {
		begin: func(parent context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(parent)
			stop := time.AfterFunc(1500*time.Millisecond, cancel)
			return ctx, func() { stop.Stop(); cancel() }
		},
		is:   []error{context.Canceled},
		text: "context canceled",
	},
	"cancelled for a reason": {
		begin: func(parent context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(parent)
			stop := time.AfterFunc(1500*time.Millisecond, func() { cancel(errStop) })
			return ctx, func() { stop.Stop(); cancel(nil) }
		},
		is:   []error{context.Canceled, errStop},
		text: "context canceled: shutting down",
	},
	"cancelled for a reason that says so": {
		begin: func(parent context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(parent)
			stop := time.AfterFunc(1500*time.Millisecond, func() { cancel(fmt.Errorf("%w: %w", errStop, context.Canceled)) })
			return ctx, func() { stop.Stop(); cancel(nil) }
		},
		is:   []error{context.Canceled, errStop},
		text: "shutting down: context canceled",
	},
	"past its deadline": {
		begin: func(parent context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(parent, 1500*time.Millisecond)
		},
		is:   []error{context.DeadlineExceeded},
		text: "context deadline exceeded",
	},
	"past its deadline for a reason": {
		begin: func(parent context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(parent, 1500*time.Millisecond, errStop)
		},
		is:   []error{context.DeadlineExceeded, errStop},
		text: "context deadline exceeded: shutting down",
	},
}

func TestContextThatEndsIsNeverHidden(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fn       func(context.Context) error // nil: the context has ended before
		attempts int
		elapsed  time.Duration
		is       error
		text     string // with the text about the context for %s
	}{
		"before the first attempt": {
			nil, 0, 1500 * time.Millisecond, nil, "%s",
		},
		"during a wait": {
			func(context.Context) error { return errBusy },
			2, 1500 * time.Millisecond, errBusy, "retry: %s, after attempt 2: busy",
		},
		"during a wait, after an attempt that failed alike": {
			func(context.Context) error { return errors.Join(context.Canceled, context.DeadlineExceeded) },
			2, 1500 * time.Millisecond, nil, "retry: %s, after attempt 2: context canceled\ncontext deadline exceeded",
		},
		"during an attempt that fails by itself": {
			func(context.Context) error { <-time.After(2 * time.Second); return errBusy },
			1, 2 * time.Second, errBusy, "retry: %s, after attempt 1: busy",
		},
		"during an attempt that obeys it and says why": {
			func(ctx context.Context) error {
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
					return fmt.Errorf("%w: %w", ctx.Err(), cause)
				}
				return context.Cause(ctx)
			},
			1, 1500 * time.Millisecond, nil, "%s",
		},
	}
	for how, ending := range endings {
		for when, tt := range tests {
			t.Run(how+" "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := ending.begin(t.Context())
					defer cancel()
					start, attempts := time.Now(), 0
					if tt.fn == nil {
						<-ctx.Done()
					}
					err := retry.Do(ctx, retry.Forever(time.Second), func(ctx context.Context) error {
						attempts++
						return tt.fn(ctx)
					})
					if attempts != tt.attempts {
						t.Errorf("%d attempts, want %d", attempts, tt.attempts)
					}
					if got := time.Since(start); got != tt.elapsed {
						t.Errorf("returned after %v, want %v", got, tt.elapsed)
					}
					if got, want := text(err), fmt.Sprintf(tt.text, ending.text); got != want {
						t.Errorf("Do = %q, want %q", got, want)
					}
					for _, target := range append(ending.is, tt.is) {
						if target != nil && !errors.Is(err, target) {
							t.Errorf("Do = %v, which is not %v", err, target)
						}
					}
				})
			})
		}
	}
}

// TestAnAttemptThatEndsItsContext: a cause that the attempt's error omits is added to it. What an attempt returns
// otherwise is kept as it is.
func TestAnAttemptThatEndsItsContext(t *testing.T) {
	t.Parallel()
	reading := fmt.Errorf("reading: %w", context.Canceled)
	for name, tt := range map[string]struct {
		cause error
		value int
		err   error // of the attempt
		want  error // nil: the attempt's with the cause
		text  string
	}{
		"its error omits the cause": {errStop, 0, reading, nil, "reading: context canceled: shutting down"},
		"its error has the cause":   {nil, 0, reading, reading, "reading: context canceled"},
		"its error is permanent":    {errStop, 0, retry.Permanent(errBusy), errBusy, "busy"},
		"it succeeds":               {errStop, 7, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			got, err := retry.Value(ctx, retry.Forever(time.Hour), func(context.Context) (int, error) {
				cancel(tt.cause)
				return tt.value, tt.err
			})
			if got != tt.value || text(err) != tt.text || tt.want != nil && err != tt.want { //nolint:errorlint // as it is
				t.Errorf("Value = %d, %v; want %d, %q", got, err, tt.value, tt.text)
			}
			if tt.err != nil && tt.want == nil && (!errors.Is(err, context.Canceled) || !errors.Is(err, tt.cause)) {
				t.Error("the error does not match the context's error and its cause")
			}
		})
	}
}

// late is a context that ends without waking a waiter. A context does so if its end is not seen
// because the wait ended in the same instant.
type late struct {
	context.Context
	end time.Time
}

func (c late) Err() error {
	if time.Now().Before(c.end) {
		return nil
	}
	return context.Canceled
}

func TestNoAttempt_when_wait_and_context_end_together(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		ctx := late{context.Background(), time.Now().Add(time.Second)}
		err := retry.Do(ctx, retry.Forever(time.Second), func(context.Context) error { attempts++; return errBusy })
		if got, want := text(err), "retry: context canceled, after attempt 1: busy"; attempts != 1 || got != want {
			t.Errorf("%d attempts, error %q; want 1, %q", attempts, got, want)
		}
	})
}

func TestNoAttempt_after_the_end_without_a_wait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	attempts := 0
	err := retry.Do(ctx, retry.Once(0), func(context.Context) error { attempts++; return errBusy },
		retry.OnRetry(func(retry.Failure) { cancel() }))
	if got, want := text(err), "retry: context canceled, after attempt 1: busy"; attempts != 1 || got != want {
		t.Errorf("%d attempts, error %q; want 1, %q", attempts, got, want)
	}
}
