package schedule_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// errWork is an error of a function that works.
var errWork = errors.New("the work failed")

// slot returns the nth slot of an hourly job.
func slot(n int) time.Time {
	return time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Hour)
}

func newSchedule(t testing.TB, c *framework.Client, path string, opts ...schedule.Option) *schedule.Schedule {
	t.Helper()
	return must.Get(schedule.New(c, path, opts...))(t)
}

// idle is work that is over at once.
func idle(context.Context, *lease.Lease) error { return nil }

// counting returns work that counts its runs, and takes d or until its context ends.
func counting(n *atomic.Int32, d time.Duration) func(context.Context, *lease.Lease) error {
	return func(ctx context.Context, _ *lease.Lease) error {
		n.Add(1)
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// mustRun runs the slot and fails the test unless the outcome is want and the error one of errs, or nil.
func mustRun(t testing.TB, s *schedule.Schedule, at time.Time, fn func(context.Context, *lease.Lease) error, want schedule.Outcome, errs ...error) schedule.Run {
	t.Helper()
	got, err := s.Run(t.Context(), at, fn)
	check(t, got, err, want, errs...)
	return got.Run
}

func check(t testing.TB, got schedule.Result, err error, want schedule.Outcome, errs ...error) {
	t.Helper()
	if got.Outcome != want || len(errs) == 0 && err != nil {
		t.Errorf("%v, %v; want %v", got.Outcome, err, want)
	}
	recipetest.Fails(t, "run", err, errs...)
}

// states returns the states of the last runs, as in "done lost".
func states(t testing.TB, s *schedule.Schedule) string {
	t.Helper()
	var all []string
	for _, run := range must.Get(s.History(t.Context()))(t) {
		all = append(all, string(run.State))
	}
	return strings.Join(all, " ")
}

func mustBe(t testing.TB, s *schedule.Schedule, want string) {
	t.Helper()
	if got := states(t, s); got != want {
		t.Errorf("history %q, want %q", got, want)
	}
}

// A result is what a call of Run returned.
type result struct {
	schedule.Result
	err error
	at  time.Time
}

// later calls Run on another goroutine.
func later(ctx context.Context, s *schedule.Schedule, at time.Time, fn func(context.Context, *lease.Lease) error) <-chan result {
	done := make(chan result, 1)
	go func() {
		got, err := s.Run(ctx, at, fn)
		done <- result{got, err, time.Now()}
	}()
	return done
}

// virtual runs body in virtual time, with a server.
func virtual(t *testing.T, body func(t *testing.T, srv *zkserver.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { body(t, zkserver.Run(t, zkenv.DrawVersion(t)...)) })
}

func client(t testing.TB, srv *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	return recipetest.Client(t, srv.Addr(), append(opts, framework.WithDialer(srv.Dial))...)
}
