package retry_test

import (
	"context"
	"math"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/docent-go/docent/retry"
)

// bound is the largest wait before retry k as the documentation states it,
// computed in numbers that cannot overflow.
func bound(base, limit time.Duration, k int) time.Duration {
	b := new(big.Int).Lsh(big.NewInt(int64(base)), uint(k))
	if l := big.NewInt(int64(limit)); b.Cmp(l) > 0 {
		b = l
	}
	return time.Duration(b.Int64())
}

func TestPropertyExponentialWaitsAreInBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(1, math.MaxInt64).Draw(t, "base")
		limit := rapid.OneOf(rapid.Int64Range(base, math.MaxInt64), rapid.Just(int64(math.MaxInt64))).Draw(t, "max")
		n := rapid.IntRange(0, 200).Draw(t, "n")
		us := rapid.SliceOfN(rapid.Float64Range(0, math.Nextafter(1, 0)), n, n).Draw(t, "random numbers")
		source := retry.WithRand(func() float64 {
			u := us[0]
			us = us[1:]
			return u
		})
		draws := append([]float64(nil), us...)

		policy := retry.BoundedExponential(time.Duration(base), time.Duration(limit), n, source)
		if limit == math.MaxInt64 { // it is then as without a bound
			policy = rapid.SampledFrom([]retry.Policy{policy, retry.Exponential(time.Duration(base), n, source)}).Draw(t, "policy")
		}
		got := waits(policy, n+1)
		if len(got) != n {
			t.Fatalf("%d waits, want %d", len(got), n)
		}
		for i, d := range got {
			most := bound(time.Duration(base), time.Duration(limit), i+1)
			if d < 0 || d > most {
				t.Fatalf("wait %d = %v, want 0 to %v", i+1, d, most)
			}
			if want := draws[i] * float64(most); math.Abs(float64(d)-want) > 1+want*1e-15 {
				t.Fatalf("wait %d = %v, want %v of %v", i+1, d, draws[i], most)
			}
		}
	})
}

func TestPropertyWithinEndsNoWaitAfterItsLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(rt, "limit"))
		wait := time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Minute)).Draw(rt, "wait"))
		work := time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(rt, "work"))

		synctest.Test(t, func(*testing.T) {
			start := time.Now()
			var begun time.Duration // when the last attempt began
			_ = retry.Do(context.Background(), retry.Within(limit, wait), func(context.Context) error {
				begun = time.Since(start)
				<-time.After(work)
				return errBusy
			})
			if begun > limit {
				rt.Errorf("an attempt began %v after the start", begun)
			}
			if next := begun + work + wait; next <= limit {
				rt.Errorf("no attempt began at %v, which is within the limit", next)
			}
		})
	})
}
