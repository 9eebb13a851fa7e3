package discovery_test

import (
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestALastingInstanceIsNotTaken: two clients register one ID at two addresses, of kinds whose znodes
// belong to no session. The second is refused. The same instance is registered again, as by a process
// that starts again.
func TestALastingInstanceIsNotTaken(t *testing.T) {
	t.Parallel()
	for _, kind := range []discovery.Kind{discovery.Static, discovery.Permanent} {
		recipetest.Subtest(t, kind.String(), func(t *testing.T, env *zkenv.Env) {
			base := recipetest.Path(t)
			first, second := newRegistry(t, env.Client(t), base), newRegistry(t, env.Client(t), base)
			in := instance{Name: "web", ID: "x", Address: "10.0.0.1", Port: 80, Kind: kind}
			must.OK(t, must.Get(first.Register(in))(t).Await(recipetest.Patient(t)))
			again := must.Get(second.Register(in))(t)
			must.OK(t, again.Await(recipetest.Patient(t)))
			must.OK(t, again.Close(recipetest.Patient(t)))
			in.Address = "10.0.0.2"
			other := must.Get(second.Register(in))(t)
			recipetest.Fails(t, "Await of a second instance of the ID", other.Await(recipetest.Patient(t)), node.ErrTaken)
			found := must.Get(first.Instances(t.Context(), "web"))(t)
			if len(found) != 1 || found[0].Address != "10.0.0.1" {
				t.Errorf("instances %+v, want the first one", found)
			}
		})
	}
}
