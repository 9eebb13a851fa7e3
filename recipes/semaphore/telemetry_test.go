package semaphore_test

import (
	"testing"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestTelemetryOfPermits: a lease has the spans of a lock, of the type "semaphore", whatever the
// number of its permits.
func TestTelemetryOfPermits(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		recorder := recipetest.Record("semaphore", "downloads")
		c := env.Client(t, recorder.Options()...)
		s := newSemaphore(t, c, recipetest.Path(t), 2, recipes.WithName("downloads"))
		held := mustAcquire(t, s, 2)
		recipetest.AwaitChildren(t, c, s.Path()+"/locks", 0)
		done := acquireLater(t.Context(), s, 1)
		recipetest.AwaitChildren(t, c, s.Path()+"/leases", 3)
		env.Quiesce() // else the permits may be free before its wait has begun
		mustRelease(t, held)
		mustRelease(t, recipetest.Granted(t, done))

		recorder.MustHaveSpans(t,
			"lock.acquire downloads", "lock.acquire downloads", "lock.hold", "lock.hold",
			"lock.release", "lock.release", "lock.wait")
		links := 0
		for _, span := range recorder.Spans() {
			links += len(span.Links())
		}
		if links == 0 {
			t.Error("no span links to the holder that the second call waited for")
		}
	}, zkenv.Only("telemetry is the same in all", zkenv.Embedded))
}
