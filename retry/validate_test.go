package retry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/retry"
)

// bare is a policy of another package's, without a Validate method.
type bare struct{ backoff.BackOff }

func (p bare) NewBackOff() backoff.BackOff { return p.BackOff }

// picky is a policy of another package's that is never valid.
type picky struct{ bare }

var errPicky = errors.New("picky: not today")

func (picky) Validate() error { return errPicky }

func TestValidateNamesEveryFault(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		policy retry.Policy
		want   []string
	}{
		"no policy": {nil, []string{
			"retry: policy nil: must not be nil",
		}},
		"Once with a negative wait": {retry.Once(-1), []string{
			"retry: Once: wait -1ns: must be 0 or more",
		}},
		"Times with two faults": {retry.Times(-2, -time.Second), []string{
			"retry: Times: n -2: must be 0 or more",
			"retry: Times: wait -1s: must be 0 or more",
		}},
		"Forever without a pause": {retry.Forever(0), []string{
			"retry: Forever: wait 0s: must be more than 0",
		}},
		"Within with two faults": {retry.Within(-1, 0), []string{
			"retry: Within: limit -1ns: must be 0 or more",
			"retry: Within: wait 0s: must be more than 0",
		}},
		"Exponential with three faults": {retry.Exponential(0, -1, retry.WithRand(nil)), []string{
			"retry: Exponential: base 0s: must be more than 0",
			"retry: Exponential: n -1: must be 0 or more",
			"retry: Exponential: WithRand: must not be nil",
		}},
		"BoundedExponential with three faults": {retry.BoundedExponential(-1, -time.Second, -1), []string{
			"retry: BoundedExponential: base -1ns: must be more than 0",
			"retry: BoundedExponential: max -1s: must be at least base -1ns",
			"retry: BoundedExponential: n -1: must be 0 or more",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := retry.Validate(tt.policy)
			if err == nil {
				t.Fatal("Validate = nil, want the faults")
			}
			if got, want := err.Error(), strings.Join(tt.want, "\n"); got != want {
				t.Errorf("Validate =\n%s\nwant\n%s", got, want)
			}
			if !errors.Is(err, retry.ErrInvalid) {
				t.Error("the error is not ErrInvalid")
			}
		})
	}
}

func TestDoRefusesWhatIsInvalidBeforeItStarts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		policy retry.Policy
		opts   []retry.DoOption
		want   string
	}{
		"no policy":                      {nil, nil, "retry: policy nil: must not be nil"},
		"an invalid policy":              {retry.Once(-1), nil, "retry: Once: wait -1ns: must be 0 or more"},
		"an invalid policy of their own": {picky{}, nil, "picky: not today"},
		"a hook that is none":            {retry.Never(), []retry.DoOption{retry.OnRetry(nil)}, "retry: Do: OnRetry: must not be nil"},
		"a Hurry that is none":           {retry.Never(), []retry.DoOption{retry.Hurry(nil)}, "retry: Do: Hurry: must not be nil"},
		"an option that is none":         {retry.Never(), []retry.DoOption{nil}, "retry: Do: option: must not be nil"},
		"both": {retry.Once(-1), []retry.DoOption{retry.OnRetry(nil)}, "retry: Once: wait -1ns: must be 0 or more\n" +
			"retry: Do: OnRetry: must not be nil"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := retry.Do(t.Context(), tt.policy, func(context.Context) error {
				t.Error("fn was called")
				return nil
			}, tt.opts...)
			if err == nil || err.Error() != tt.want {
				t.Errorf("Do = %v, want %s", err, tt.want)
			}
			if !errors.Is(err, errPicky) && !errors.Is(err, retry.ErrInvalid) {
				t.Error("the error is not ErrInvalid")
			}
		})
	}
}

func TestDoPanics(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		call func()
		want string
	}{
		"Do without ctx": {
			func() { _ = retry.Do(nil, retry.Never(), func(context.Context) error { return nil }) }, //nolint:staticcheck // the fault
			"retry: Do: ctx: must not be nil",
		},
		"a policy without a BackOff": {
			func() { _ = retry.Do(t.Context(), bare{}, func(context.Context) error { return errPicky }) },
			"retry: retry_test.bare.NewBackOff returned nil",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if got := recover(); got != tt.want {
					t.Errorf("panic = %v, want %s", got, tt.want)
				}
			}()
			tt.call()
		})
	}
}
