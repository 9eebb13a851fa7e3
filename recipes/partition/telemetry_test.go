package partition_test

import (
	"testing"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
)

// The lease of a key has the spans and metrics of a lock, of the type "partition".
func TestTelemetryOfKeys(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		recorder := recipetest.Record("partition", "shards")
		keys, o := names("key-", 2), newOracle(t)
		m := o.start(t, env.Client(t, recorder.Options()...), recipetest.Path(t), "a", keys, recipes.WithName("shards"))
		o.await(t, keys, "a")
		m.leave(t)
		recorder.MustHaveSpans(t,
			"lock.acquire shards", "lock.acquire shards", "lock.hold", "lock.hold", "lock.release", "lock.release")
		recorder.MustHaveAcquires(t, 2)
	}, zkenv.Only("telemetry is the same in all", zkenv.Embedded, zkenv.Standalone))
}
