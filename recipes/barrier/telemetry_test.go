package barrier_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/codes"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestTelemetryOfAPlace: a place has the spans of a lock, of the type "double_barrier". An entry that
// ends with its context has no hold.
func TestTelemetryOfAPlace(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		recorder := recipetest.Record("double_barrier", "start")
		c := env.Client(t, recorder.Options()...)
		path := recipetest.Path(t)
		d := must.Get(barrier.NewDouble(c, path, 2, recipes.WithName("start")))(t)
		withdrawn, cancel := context.WithCancel(t.Context())
		withdrawing := recipetest.Later(withdrawn, d.Enter)
		recipetest.AwaitChildren(t, c, path, 1)
		env.Quiesce() // else the entry may be withdrawn before its wait has begun
		cancel()
		if got := must.Receive(t, withdrawing, "the end of Enter"); !errors.Is(got.Err, context.Canceled) {
			t.Fatalf("Enter: %v, want Canceled", got.Err)
		}
		recipetest.AwaitChildren(t, c, path, 0)
		entering := recipetest.Later(t.Context(), d.Enter)
		recipetest.AwaitChildren(t, c, path, 1)
		env.Quiesce()
		other := newDouble(t, env.Client(t), path, 2)
		theirs := recipetest.Granted(t, recipetest.Later(t.Context(), other.Enter))
		l := recipetest.Granted(t, entering)
		leaving := leaveLater(t.Context(), d, l)
		left(t, leaveLater(t.Context(), other, theirs))
		left(t, leaving)

		recorder.MustHaveSpans(t,
			"lock.acquire start", "lock.acquire start", "lock.hold", "lock.release", "lock.wait", "lock.wait")
		var failed []string
		for _, span := range recorder.Spans() {
			if span.Status().Code == codes.Error {
				failed = append(failed, span.Name())
			}
		}
		if want := []string{"lock.acquire start", "lock.wait"}; !slices.Equal(failed, want) {
			t.Errorf("spans %q failed, want those of the entry that was withdrawn", failed)
		}
	}, zkenv.Only("telemetry is the same in all", zkenv.Embedded))
}
