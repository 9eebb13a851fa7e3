package retry_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/retry"
)

// FuzzPolicies checks that a policy of any arguments is refused, and then allows no retry, or
// keeps to its number of retries and its bounds.
func FuzzPolicies(f *testing.F) {
	f.Add(int64(time.Second), int64(time.Minute), 5, 0.5)
	f.Add(int64(1), int64(math.MaxInt64), 100, math.Nextafter(1, 0))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), math.MaxInt, 1.0)
	f.Add(int64(0), int64(0), 0, 0.0)
	f.Add(int64(0), int64(1), 0, 0.0)
	f.Add(int64(1), int64(1), 0, 0.0)
	f.Add(int64(math.MinInt64), int64(-1), math.MinInt, math.NaN())
	f.Add(int64(7), int64(3), -1, math.Inf(-1))

	f.Fuzz(func(t *testing.T, a, b int64, n int, u float64) {
		const limit = 100
		base, most := time.Duration(a), time.Duration(b)
		policies := map[string]struct {
			policy retry.Policy
			valid  bool
			n      int
			most   time.Duration // bound of every wait
		}{
			"Never":              {retry.Never(), true, 0, 0},
			"Once":               {retry.Once(base), base >= 0, 1, base},
			"Times":              {retry.Times(n, base), n >= 0 && base >= 0, n, base},
			"Forever":            {retry.Forever(base), base > 0, limit, base},
			"Exponential":        {retry.Exponential(base, n, always(u)), n >= 0 && base > 0, n, math.MaxInt64},
			"BoundedExponential": {retry.BoundedExponential(base, most, n, always(u)), n >= 0 && base > 0 && most >= base, n, most},
		}
		for name, p := range policies {
			err := retry.Validate(p.policy)
			if (err == nil) != p.valid || err != nil && !errors.Is(err, retry.ErrInvalid) {
				t.Fatalf("%s(%v, %v, %d): Validate = %v, want valid %t", name, base, most, n, err, p.valid)
			}
			want := 0
			if p.valid {
				want = min(p.n, limit)
			}
			got := waits(p.policy, limit)
			if len(got) != want {
				t.Fatalf("%s(%v, %v, %d): %d retries, want %d", name, base, most, n, len(got), want)
			}
			for _, d := range got {
				if d > p.most {
					t.Fatalf("%s(%v, %v, %d): waits %v, want at most %v", name, base, most, n, d, p.most)
				}
			}
		}

		within := retry.Within(base, most)
		err := retry.Validate(within)
		if valid := base >= 0 && most > 0; (err == nil) != valid {
			t.Fatalf("Within(%v, %v): Validate = %v, want valid %t", base, most, err, valid)
		}
		if d := within.NewBackOff().NextBackOff(); d != backoff.Stop && (err != nil || d != most || most > base) {
			t.Fatalf("Within(%v, %v): waits %v first", base, most, d)
		}
	})
}
