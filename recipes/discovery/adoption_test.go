package discovery_test

import (
	"errors"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestAdoptionComparesWithTheUpdatedInstance: a registered instance has got another port. In its place
// comes another client's znode, with the former port or the present one.
func TestAdoptionComparesWithTheUpdatedInstance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		port  int
		taken bool
	}{
		"the former port":  {80, true},
		"the present port": {81, false},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			base, elsewhere, other := recipetest.Path(t), recipetest.Path(t), env.Client(t)
			in := web("i1", 80)
			in.Kind = discovery.Permanent
			reg := mustRegister(t, newRegistry(t, env.Client(t), base), in)
			in.Port = 81
			must.OK(t, reg.Update(recipetest.Patient(t), in))
			in.Port, in.Payload = c.port, zone{Zone: "us"}
			mustRegister(t, newRegistry(t, other, elsewhere), in)
			data, _ := must.Get2(other.Get(t.Context(), elsewhere+"/web/i1"))(t)
			at := base + "/web/i1"
			must.Get(other.Txn(t.Context(), framework.OpDelete(at, framework.AnyVersion), framework.OpCreate(at, data)))(t)
			zktest.Eventually(t, recipetest.Generous, "the end of an attempt", func() bool {
				err := reg.Await(recipetest.Patient(t))
				found, _ := must.Get2(other.Get(t.Context(), at))(t)
				if c.taken {
					return errors.Is(err, node.ErrTaken)
				}
				return err == nil && string(found) != string(data)
			})
			env.Quiesce()
			if found, _ := must.Get2(other.Get(t.Context(), at))(t); (string(found) == string(data)) != c.taken {
				t.Errorf("data %s; it is another client's: %v", found, c.taken)
			}
		})
	}
}

// hostile is a payload whose user's code fails.
type hostile struct{}

func (*hostile) UnmarshalJSON([]byte) error { panic("no such payload") }

// TestAPayloadIsNotDecodedForAdoption: the kind, the address and the ports decide. No code of the user's
// runs for that.
func TestAPayloadIsNotDecodedForAdoption(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		base := recipetest.Path(t)
		in := web("i1", 80)
		in.Kind = discovery.Static
		mustRegister(t, newRegistry(t, env.Client(t), base), in)
		r := must.Get(discovery.New[hostile](env.Client(t), base))(t)
		again := must.Get(r.Register(discovery.Instance[hostile]{
			Name: in.Name, ID: in.ID, Address: in.Address, Port: in.Port, Kind: in.Kind,
		}))(t)
		must.OK(t, again.Await(recipetest.Patient(t)))
		must.OK(t, r.Close(recipetest.Patient(t)))
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded))
}
