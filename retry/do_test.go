package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/retry"
)

var (
	errBusy = errors.New("busy")
	errStop = errors.New("shutting down")
)

// failing returns an fn that fails n times with errBusy and then succeeds.
func failing(n int) func(context.Context) error {
	return func(context.Context) error {
		if n--; n >= 0 {
			return errBusy
		}
		return nil
	}
}

func TestDoMakesAsManyAttemptsAsItTakes(t *testing.T) {
	t.Parallel()
	const s = time.Second
	type key struct{}
	tests := map[string]struct {
		policy   retry.Policy
		failures int // before fn succeeds
		attempts int
		elapsed  time.Duration
		text     string // of the error; empty for none
	}{
		"success at once needs no policy":    {retry.Never(), 0, 1, 0, ""},
		"Never gives up at once":             {retry.Never(), 9, 1, 0, "busy"},
		"Times without retries is Never":     {retry.Times(0, s), 9, 1, 0, "busy"},
		"Once succeeds the second time":      {retry.Once(s), 1, 2, 1 * s, ""},
		"Once gives up after its retry":      {retry.Once(s), 9, 2, 1 * s, "retry: gave up after 2 attempts in 1s: busy"},
		"n retries are n+1 attempts":         {retry.Times(3, s), 9, 4, 3 * s, "retry: gave up after 4 attempts in 3s: busy"},
		"the last retry may be the one":      {retry.Times(3, s), 3, 4, 3 * s, ""},
		"retries without a wait":             {retry.Times(3, 0), 9, 4, 0, "retry: gave up after 4 attempts in 0s: busy"},
		"Forever goes on":                    {retry.Forever(s), 1000, 1001, 1000 * s, ""},
		"Within does not overshoot":          {retry.Within(5*s, 2*s), 9, 3, 4 * s, "retry: gave up after 3 attempts in 4s: busy"},
		"Within reaches its limit":           {retry.Within(4*s, 2*s), 9, 3, 4 * s, "retry: gave up after 3 attempts in 4s: busy"},
		"Within less than one wait":          {retry.Within(1*s, 2*s), 9, 1, 0, "busy"},
		"Exponential":                        {retry.Exponential(s, 3, always(0.5)), 9, 4, 7 * s, "retry: gave up after 4 attempts in 7s: busy"},
		"BoundedExponential":                 {retry.BoundedExponential(s, s, 3, always(0.5)), 9, 4, 1500 * time.Millisecond, "retry: gave up after 4 attempts in 1.5s: busy"},
		"a policy of one's own":              {bare{backoff.WithMaxRetries(backoff.NewConstantBackOff(s), 2)}, 9, 3, 2 * s, "retry: gave up after 3 attempts in 2s: busy"},
		"any negative wait of one is a stop": {bare{backoff.NewConstantBackOff(-7)}, 9, 1, 0, "busy"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start, attempts, fn := time.Now(), 0, failing(tt.failures)
				ctx := context.WithValue(t.Context(), key{}, "Do's")
				err := retry.Do(ctx, tt.policy, func(ctx context.Context) error {
					if got := ctx.Value(key{}); got != "Do's" {
						t.Errorf("the context of an attempt has the value %v, want Do's", got)
					}
					attempts++
					return fn(ctx)
				})
				if attempts != tt.attempts {
					t.Errorf("%d attempts, want %d", attempts, tt.attempts)
				}
				if elapsed := time.Since(start); elapsed != tt.elapsed {
					t.Errorf("%v elapsed, want %v", elapsed, tt.elapsed)
				}
				if got := text(err); got != tt.text {
					t.Errorf("Do = %q, want %q", got, tt.text)
				}
				if err != nil && !errors.Is(err, errBusy) || tt.text == "busy" && err != errBusy { //nolint:errorlint // as it is
					t.Errorf("Do = %#v, want the last attempt's error, as it is if there was one attempt", err)
				}
				want := retry.ExhaustedError{Attempts: tt.attempts, Elapsed: tt.elapsed, Err: errBusy}
				if exhausted := new(retry.ExhaustedError); errors.As(err, &exhausted) && *exhausted != want {
					t.Errorf("Do = %+v, want %+v", *exhausted, want)
				}
			})
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestPermanentEndsTheRetries(t *testing.T) {
	t.Parallel()
	wrapped := fmt.Errorf("while at it: %w", retry.Permanent(errBusy))
	tests := map[string]struct{ in, want error }{
		"a marked error":               {retry.Permanent(errBusy), errBusy},
		"an error marked twice":        {retry.Permanent(retry.Permanent(errBusy)), errBusy},
		"an error marked by backoff":   {backoff.Permanent(errBusy), errBusy},
		"an error around a marked one": {wrapped, wrapped},
		"a marked one around another":  {retry.Permanent(wrapped), wrapped},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, before := range []int{0, 2} { // failures that may be retried
				attempts := 0
				err := retry.Do(t.Context(), retry.Times(9, 0), func(context.Context) error {
					if attempts++; attempts <= before {
						return errBusy
					}
					return tt.in
				})
				if err != tt.want { //nolint:errorlint // identity is the promise
					t.Errorf("Do = %v, want %v", err, tt.want)
				}
				if attempts != before+1 {
					t.Errorf("%d attempts, want %d", attempts, before+1)
				}
			}
		})
	}
	if err := retry.Permanent(nil); err != nil {
		t.Errorf("Permanent(nil) = %v, want nil", err)
	}
	if err := retry.Permanent(errBusy); !errors.Is(err, errBusy) || err.Error() != "busy" {
		t.Errorf("Permanent = %v, want an error that is, and reads like, the one it marks", err)
	}
}

func TestOnRetrySeesEveryFailureThatIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var first, second []retry.Failure
		err := retry.Do(t.Context(), retry.Exponential(time.Second, 3, always(0.5)), failing(9),
			retry.OnRetry(func(f retry.Failure) { first = append(first, f) }),
			retry.OnRetry(func(f retry.Failure) { second = append(second, f) }))
		want := []retry.Failure{
			{Attempt: 1, Err: errBusy, Wait: 1 * time.Second},
			{Attempt: 2, Err: errBusy, Wait: 2 * time.Second},
			{Attempt: 3, Err: errBusy, Wait: 4 * time.Second},
		}
		if err == nil || !slices.Equal(first, want) || !slices.Equal(second, want) {
			t.Errorf("Do = %v; the hooks saw %v and %v, want %v each", err, first, second, want)
		}
	})
}

func TestOnRetryIsNotCalledWithoutARetry(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hook := retry.OnRetry(func(f retry.Failure) { t.Errorf("the hook saw %v", f) })

	_ = retry.Do(ctx, retry.Never(), failing(0), hook)
	_ = retry.Do(ctx, retry.Never(), failing(1), hook)
	_ = retry.Do(ctx, retry.Once(0), func(context.Context) error { return retry.Permanent(errBusy) }, hook)
	_ = retry.Do(ctx, retry.Once(0), func(context.Context) error { cancel(); return errBusy }, hook)
}

func TestValueIsZeroWithAnError(t *testing.T) {
	t.Parallel()
	got, err := retry.Value(t.Context(), retry.Once(0), func(context.Context) (string, error) { return "half done", errBusy })
	if got != "" || !errors.Is(err, errBusy) {
		t.Errorf("Value = %q, %v; want nothing and the failure", got, err)
	}
}

func TestSuccessAtOnceAllocatesNothing(t *testing.T) {
	ctx, p := t.Context(), retry.Exponential(time.Second, 5)
	n := testing.AllocsPerRun(100, func() {
		_ = retry.Do(ctx, p, func(context.Context) error { return nil })
		_, _ = retry.Value(ctx, p, func(context.Context) (int, error) { return 1, nil })
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
