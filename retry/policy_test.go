package retry_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/retry"
)

// waits draws up to limit waits from one BackOff of p.
func waits(p retry.Policy, limit int) []time.Duration {
	return drain(p.NewBackOff(), limit)
}

func drain(b backoff.BackOff, limit int) []time.Duration {
	var ds []time.Duration
	for len(ds) < limit {
		d := b.NextBackOff()
		if d < 0 {
			break
		}
		ds = append(ds, d)
	}
	return ds
}

// always is a source of random numbers that knows only one.
func always(u float64) retry.Option {
	return retry.WithRand(func() float64 { return u })
}

func TestWaits(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	tests := map[string]struct {
		policy retry.Policy
		want   []time.Duration // of the first 5
	}{
		"Never allows no retry":                    {retry.Never(), nil},
		"Once allows one":                          {retry.Once(ms), []time.Duration{ms}},
		"Once may retry at once":                   {retry.Once(0), []time.Duration{0}},
		"Times allows n":                           {retry.Times(3, ms), []time.Duration{ms, ms, ms}},
		"Times of none is Never":                   {retry.Times(0, ms), nil},
		"Forever does not end":                     {retry.Forever(ms), []time.Duration{ms, ms, ms, ms, ms}},
		"Exponential of none is Never":             {retry.Exponential(ms, 0), nil},
		"Exponential doubles its bound":            {retry.Exponential(ms, 3, always(0.5)), []time.Duration{ms, 2 * ms, 4 * ms}},
		"Exponential has no floor":                 {retry.Exponential(ms, 2, always(0)), []time.Duration{0, 0}},
		"BoundedExponential stays at max":          {retry.BoundedExponential(ms, 3*ms, 4, always(1)), []time.Duration{2 * ms, 3 * ms, 3 * ms, 3 * ms}},
		"a max equal to base bounds every wait":    {retry.BoundedExponential(ms, ms, 2, always(1)), []time.Duration{ms, ms}},
		"a random number above the range is 1":     {retry.Exponential(ms, 1, always(7)), []time.Duration{2 * ms}},
		"a random number below the range is 0":     {retry.Exponential(ms, 1, always(-7)), []time.Duration{0}},
		"a random number that is not one is 0":     {retry.Exponential(ms, 1, always(math.NaN())), []time.Duration{0}},
		"an infinite random number is 1":           {retry.Exponential(ms, 1, always(math.Inf(1))), []time.Duration{2 * ms}},
		"the largest base stays a Duration":        {retry.Exponential(math.MaxInt64, 2, always(1)), []time.Duration{math.MaxInt64, math.MaxInt64}},
		"the largest share stays below the bound":  {retry.Exponential(math.MaxInt64, 1, always(math.Nextafter(1, 0))), []time.Duration{math.MaxInt64 - 1023}},
		"the last option of a kind is the one":     {retry.Exponential(ms, 1, always(0), always(1)), []time.Duration{2 * ms}},
		"a negative n allows no retry":             {retry.Times(-1, ms), nil},
		"a negative wait allows no retry":          {retry.Forever(-ms), nil},
		"a negative limit allows no retry":         {retry.Within(-ms, ms), nil},
		"a max below base allows no retry":         {retry.BoundedExponential(2*ms, ms, 3), nil},
		"an exponential without a source does too": {retry.Exponential(ms, 3, retry.WithRand(nil)), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := tt.policy.NewBackOff()
			if got := drain(b, 5); !slices.Equal(got, tt.want) {
				t.Errorf("waits = %v, want %v", got, tt.want)
			}
			b.Reset()
			if got := drain(b, 5); !slices.Equal(got, tt.want) {
				t.Errorf("waits after Reset = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestWithinEndsWithItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := retry.Within(10*time.Second, 4*time.Second).NewBackOff()
		spend := func() int {
			n := 0
			for d := b.NextBackOff(); d != backoff.Stop; d = b.NextBackOff() {
				<-time.After(d)
				n++
			}
			return n
		}
		if n := spend(); n != 2 {
			t.Errorf("%d waits of 4s in 10s, want 2: the third would end at 12s", n)
		}
		b.Reset()
		if n := spend(); n != 2 {
			t.Errorf("%d waits after Reset, want 2", n)
		}
	})
}

func TestWithinAllowsAWaitThatEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if got := retry.Within(time.Second, time.Second).NewBackOff().NextBackOff(); got != time.Second {
			t.Errorf("wait of 1s within 1s = %v, want 1s", got)
		}
		if got := retry.Within(time.Second, time.Second+1).NewBackOff().NextBackOff(); got != backoff.Stop {
			t.Errorf("wait of more than 1s within 1s = %v, want Stop", got)
		}
		if got := retry.Within(math.MaxInt64, math.MaxInt64).NewBackOff().NextBackOff(); got != math.MaxInt64 {
			t.Errorf("the longest wait = %v, want %v", got, time.Duration(math.MaxInt64))
		}
	})
}

func TestPolicyIsSharedByConcurrentOperations(t *testing.T) {
	t.Parallel()
	// The source is not safe for concurrent use: only the policy can make it so.
	p := retry.Exponential(time.Nanosecond, 20, retry.WithRand(rand.New(rand.NewPCG(1, 2)).Float64))
	failure := errors.New("failure")

	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			attempts := 0
			err := retry.Do(t.Context(), p, func(context.Context) error { attempts++; return failure })
			if attempts != 21 || !errors.Is(err, failure) {
				t.Errorf("%d attempts, error %v; want 21 attempts that end with the failure", attempts, err)
			}
		})
	}
	wg.Wait()
}

func TestRandomSourceIsReleasedByAPanic(t *testing.T) {
	t.Parallel()
	draws := 0
	p := retry.Exponential(time.Second, 3, retry.WithRand(func() float64 {
		if draws++; draws == 1 {
			panic("first draw")
		}
		return 0.5
	}))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the source's panic was swallowed")
			}
		}()
		waits(p, 1)
	}()
	if got := waits(p, 1); len(got) != 1 || got[0] != time.Second {
		t.Errorf("waits = %v, want [1s]", got)
	}
}
