package leader_test

import (
	"testing"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
)

// A term has the spans and metrics of a lock, of the type "leader".
func TestTelemetryOfATerm(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		recorder := recipetest.Record("leader", "reports")
		c := env.Client(t, recorder.Options()...)
		mustResign(t, mustLead(t, newElection(t, c, recipetest.Path(t), recipes.WithName("reports"))))
		recorder.MustHaveSpans(t, "lock.acquire reports", "lock.hold", "lock.release")
		recorder.MustHaveAcquires(t, 1)
	}, zkenv.Only("telemetry is the same in all", zkenv.Embedded, zkenv.Standalone))
}
