package leader_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/locktest"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestContract checks what every lock promises, since a leader holds a lease as a lock's holder does.
func TestContract(t *testing.T) {
	t.Parallel()
	formats := map[leader.Format][]locktest.Option{
		leader.Latch:    nil,
		leader.Selector: {locktest.In(zkenv.Only("it differs from Latch in names alone", zkenv.Embedded))},
	}
	for format, opts := range formats {
		t.Run(format.String(), func(t *testing.T) {
			t.Parallel()
			locktest.Run(t, func(t testing.TB, c *framework.Client, path string) lock.Locker {
				return recipetest.Candidate{Election: newElection(t, c, path, leader.WithFormat(format))}
			}, append(opts, locktest.Fair(), locktest.NoTry())...)
		})
	}
}

// TestLeadershipOutlivesAShortOutage: one znode and one term, before and after (FLINK-10052).
func TestLeadershipOutlivesAShortOutage(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)
		term := mustLead(t, newElection(t, route.Client(t), path))
		behind := recipetest.Later(t.Context(), newElection(t, route.Client(t), path).Campaign)
		recipetest.AwaitChildren(t, observer, path, 2)
		before := recipetest.Children(t, observer, path)
		for range 3 {
			route.Cut()
			env.Quiesce()
		}
		if err := term.Err(); err != nil {
			t.Errorf("term after the outages: %v", err)
		}
		after := recipetest.Children(t, observer, path)
		if len(after) != 2 || before[0]+before[1] != after[0]+after[1] && before[0]+before[1] != after[1]+after[0] {
			t.Errorf("candidates %v after the outages, %v before", after, before)
		}
		mustResign(t, term)
		mustResign(t, recipetest.Granted(t, behind))
	})
}
