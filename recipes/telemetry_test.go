package recipes_test

import (
	"context"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestTelemetryOfLeases: whatever a lease is of, it has the spans and metrics of a lock, with its type. Of two
// calls one waits, and has a link to the contender that blocks it, if one does.
func TestTelemetryOfLeases(t *testing.T) {
	t.Parallel()
	const path = "/reports"
	for kind, row := range map[string]struct {
		open  func(t *testing.T, c *framework.Client) func(context.Context) (*lease.Lease, error)
		links bool
	}{
		"leader": {func(t *testing.T, c *framework.Client) func(context.Context) (*lease.Lease, error) {
			return must.Get(leader.New(c, path, recipes.WithName("reports")))(t).Campaign
		}, true},
		"semaphore": {func(t *testing.T, c *framework.Client) func(context.Context) (*lease.Lease, error) {
			s := must.Get(semaphore.New(c, path, 2, recipes.WithName("reports")))(t)
			return func(ctx context.Context) (*lease.Lease, error) { return s.Acquire(ctx, 2) }
		}, true},
		"double_barrier": {func(t *testing.T, c *framework.Client) func(context.Context) (*lease.Lease, error) {
			return must.Get(barrier.NewDouble(c, path, 2, recipes.WithName("reports")))(t).Enter
		}, false},
	} {
		recipetest.Subtest(t, kind, func(t *testing.T, env *zkenv.Env) {
			recorder := recipetest.Record(kind, "reports")
			acquire := row.open(t, env.Client(t, recorder.Options()...))
			var calls []<-chan recipetest.Outcome
			for range 2 {
				calls = append(calls, recipetest.Later(t.Context(), acquire))
				env.Quiesce()
			}
			for _, call := range calls {
				must.OK(t, recipetest.Granted(t, call).Release(t.Context()))
			}
			recorder.MustHaveSpans(t, "lock.acquire reports", "lock.acquire reports",
				"lock.hold", "lock.hold", "lock.release", "lock.release", "lock.wait")
			recorder.MustHaveAcquires(t, 2)
			for _, span := range recorder.Spans() {
				if span.Name() == "lock.wait" && (len(span.Links()) > 0) != row.links {
					t.Errorf("the wait has the links %v", span.Links())
				}
			}
		}, zkenv.Only("telemetry is the same in all", zkenv.Embedded))
	}
}
