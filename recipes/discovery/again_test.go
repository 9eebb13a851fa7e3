package discovery_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestARegistrationInTheNextSessionHidesNoInstance: a client abandons its session, and the ensemble still
// has it, with the instance. Whatever request of the next registration is stuck, the instance exists.
func TestARegistrationInTheNextSessionHidesNoInstance(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"nothing goes wrong":            {Op: fault.Create, Action: fault.HoldRequest, Skip: 1000},
		"a creation is held up":         {Op: fault.Create, Action: fault.HoldRequest, Skip: 1}, // the first finds the former znode
		"a transaction is held up":      {Op: fault.Multi, Action: fault.HoldRequest},
		"a transaction's reply is late": {Op: fault.Multi, Action: fault.HoldReply},
		"a transaction's reply is lost": {Op: fault.Multi, Action: fault.DropReply},
		"a transaction is not sent":     {Op: fault.Multi, Action: fault.CutBefore},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			base, route, observer := recipetest.Path(t), env.Route(t), env.Client(t)
			c := route.Client(t)
			looking := newRegistry(t, observer, base)
			reg := mustRegister(t, newRegistry(t, c, base), web("i1", 80))
			former := c.Session().ID
			rule := rule // the environments are parallel
			rule.Path = base + "/web/i1"
			held := route.Rules().Add(rule)
			route.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
			route.Cut()
			zktest.Eventually(t, recipetest.Generous, "the next session", func() bool {
				return c.State() == framework.Connected && c.Session().ID != former
			})
			env.Quiesce()
			if got := listed(t, observer, looking); got != "i1:80" {
				t.Errorf("instances %s while the client registers again", got)
			}
			held.Release()
			zktest.Eventually(t, recipetest.Generous, "the registration in the next session", func() bool {
				_, st, err := observer.Get(t.Context(), rule.Path)
				return err == nil && st.EphemeralOwner == c.Session().ID
			})
			must.OK(t, reg.Await(recipetest.Patient(t)))
		})
	}
}
