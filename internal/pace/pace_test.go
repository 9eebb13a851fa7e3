package pace_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/pace"
)

func TestPace(t *testing.T) {
	for name, tt := range map[string]struct {
		pace  pace.Pace
		waits int
		n     int
		want  time.Duration
	}{
		"no bound":         {pace.Pace{}, 1000, 1, 0},
		"one after other":  {pace.Pace{Rate: 10}, 11, 1, time.Second},
		"several at once":  {pace.Pace{Rate: 10}, 3, 5, time.Second},
		"a burst":          {pace.Pace{Rate: 10, Burst: 16}, 17, 1, 0},
		"behind the burst": {pace.Pace{Rate: 10, Burst: 16}, 27, 1, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				for range tt.waits {
					must.OK(t, tt.pace.Wait(t.Context(), tt.n))
				}
				if took := time.Since(start); took != tt.want {
					t.Errorf("%d waits for %d took %v, want %v", tt.waits, tt.n, took, tt.want)
				}
			})
		})
	}
}

func TestPace_rests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace.Pace{Rate: 10, Burst: 2}
		for range 2 {
			start := time.Now()
			for range 3 {
				must.OK(t, p.Wait(t.Context(), 1))
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("a burst took %v", took)
			}
			<-time.After(time.Second)
		}
	})
}

func TestPace_ends_with_the_context(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := pace.Pace{Rate: 1}
		for range 2 {
			if err := p.Wait(ctx, 5); err != nil {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				return
			}
		}
		t.Error("the second wait took no longer than the context")
	})
}

func TestDoubled(t *testing.T) {
	for n, want := range map[int]time.Duration{0: 3, 1: 6, 2: 12, 3: 20, 4: 20, math.MaxInt: 20} {
		if got := pace.Doubled(3, 20, n); got != want {
			t.Errorf("doubled %d times: %d, want %d", n, got, want)
		}
	}
	if got := pace.Doubled(30, 20, 0); got != 20 {
		t.Errorf("%d is above the most", got)
	}
}
