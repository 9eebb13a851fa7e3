package retry_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/internal/check"
	"github.com/docent-go/docent/internal/must"
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
			check.Slices(t, drain(b, 5), tt.want, "waits")
			b.Reset()
			check.Slices(t, drain(b, 5), tt.want, "waits after Reset")
		})
	}
}

func TestExponentialOutlastsAnyCount(t *testing.T) {
	t.Parallel()
	for k, d := range waits(retry.Exponential(1, math.MaxInt, always(1)), 500) {
		want := time.Duration(math.MaxInt64)
		if k < 62 {
			want = 2 << k
		}
		must.Equal(t, d, want, "wait %d", k+1)
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
		check.Equal(t, spend(), 2, "waits of 4s in 10s, want 2: the third would end at 12s")
		b.Reset()
		check.Equal(t, spend(), 2, "waits after Reset")
	})
}

func TestWithinAllowsAWaitThatEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		check.Equal(t, retry.Within(time.Second, time.Second).NewBackOff().NextBackOff(), time.Second,
			"wait of 1s within 1s, want 1s")
		check.Equal(t, retry.Within(time.Second, time.Second+1).NewBackOff().NextBackOff(), backoff.Stop,
			"wait of more than 1s within 1s")
		check.Equal(t, retry.Within(math.MaxInt64, math.MaxInt64).NewBackOff().NextBackOff(), math.MaxInt64,
			"the longest wait, want %v", time.Duration(math.MaxInt64))
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
			check.That(t, attempts == 21 && errors.Is(err, failure),
				"%d attempts, error %v; want 21 attempts that end with the failure", attempts, err)
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
			check.That(t, recover() != nil, "the source's panic was swallowed")
		}()
		waits(p, 1)
	}()
	got := waits(p, 1)
	check.That(t, len(got) == 1 && got[0] == time.Second, "waits = %v, want [1s]", got)
}
