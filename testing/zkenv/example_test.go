package zkenv_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// A test function has one body for all environments. This one loses the reply to a create on
// one client's way to the server, and sees to it that the client finds out.
func ExampleForEach() {
	test := func(t *testing.T) { // func TestCreateIsRepeated
		zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
			route := env.Route(t)
			route.Rules().Add(fault.Rule{Op: fault.Create, Path: "/node", Action: fault.DropReply})
			if _, err := route.Client(t).Create(t.Context(), "/node", nil, framework.Idempotent()); err != nil {
				t.Error(err)
			}
			if _, ok, err := env.Client(t).Exists(t.Context(), "/node"); err != nil || !ok {
				t.Errorf("exists: %v, %v; want true", ok, err)
			}
		})
	}
	_ = test
}
