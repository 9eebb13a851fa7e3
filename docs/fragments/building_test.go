package fragments_test

import (
	"context"
	"errors"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// Two hosts run the job on two days. The clock of the second host is a day behind on the last day.
func TestBuilding_a_job_that_runs_once(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		var j job
		for _, call := range []struct {
			client *framework.Client
			today  string
			want   int
		}{
			{s.client, "2026-03-01", 1},
			{s.client, "2026-03-01", 1},
			{connect(t, s.server), "2026-03-01", 1},
			{connect(t, s.server), "2026-03-02", 2},
			{s.client, "2026-03-01", 2},
		} {
			succeed(t, func() error { return runOnce(t.Context(), call.client, call.today, j.work) })
			j.want(t, call.want)
		}
	})
}

// A run whose mark another host has overtaken says so.
func TestBuilding_a_job_whose_host_was_stopped(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		err := runOnce(t.Context(), s.client, "2026-03-01", func(ctx context.Context) error {
			_, err := s.client.Set(ctx, "/marks/nightly", []byte("2026-03-02"), framework.AnyVersion)
			return err
		})
		if !errors.Is(err, framework.ErrBadVersion) {
			t.Errorf("the mark of a later run: %v, want %v", err, framework.ErrBadVersion)
		}
	})
}

func runOnce(ctx context.Context, client *framework.Client, today string, work func(context.Context) error) error {
	job, err := lock.NewUnfairMutex(client, "/jobs/nightly")
	if err != nil {
		return err
	}
	const mark = "/marks/nightly" // holds the last day that is done, such as 2026-03-01
	_, err = client.Create(ctx, mark, nil, framework.WithParents())
	if err != nil && !errors.Is(err, framework.ErrNodeExists) {
		return err
	}
	err = lock.Do(ctx, job, func(ctx context.Context, _ *lock.Lease) error {
		last, stat, err := client.Get(ctx, mark)
		if err != nil || string(last) >= today {
			return err // done already
		}
		if err := work(ctx); err != nil {
			return err
		}
		_, err = client.Set(ctx, mark, []byte(today), stat.Version)
		return err
	})
	return err
}
