package counter_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestAnIsolatedFollowerAppliesOnceOrSaysSo cuts the client's server off from the ensemble's leader,
// which takes the connection but commits nothing. An addition there ends with its context, and its
// outcome is unknown. It is applied once or not at all. Other clients go on meanwhile, and this one goes
// on when its server is a follower again.
func TestAnIsolatedFollowerAppliesOnceOrSaysSo(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const unknown, others = 100, 10
		members, path := env.Members(), recipetest.Path(t)
		follower := members[0]
		c := follower.Route(t).Client(t, framework.WithSessionTimeout(4*time.Second))
		n := newCounter(t, c, path)
		other := newCounter(t, members[len(members)-1].Client(t), path)
		mustAdd(t, n, 1)
		follower.Isolate(t)
		ctx := recipetest.Within(t, time.Second)
		began := time.Now()
		_, err := n.Add(ctx, unknown)
		recipetest.Fails(t, "addition on an isolated follower", err, context.DeadlineExceeded, framework.ErrUnknownOutcome)
		if d := time.Since(began); d > recipetest.Generous {
			t.Errorf("addition on an isolated follower: returned after %v", d)
		}
		for range others {
			mustAdd(t, other, 1)
		}
		follower.Heal()
		var v int64
		zktest.Eventually(t, recipetest.Generous, "an answer to the client of the follower", func() bool {
			v, err = n.Add(t.Context(), 0) // may meet the session's end
			return err == nil
		})
		if want := int64(1 + others); v != want && v != want+unknown {
			t.Errorf("number %d, want %d, or %d more", v, want, unknown)
		}
		mustBe(t, other, v)
	}, zkenv.Breakable(), zkenv.Only("it takes a follower and its leader", zkenv.EmbeddedEnsemble, zkenv.Ensemble))
}
