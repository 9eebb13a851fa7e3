package leader_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestRequestsOfAnElection counts, at the server's door, what the page of the recipe promises.
func TestRequestsOfAnElection(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		must.Get(env.Client(t).Create(t.Context(), path, nil, framework.WithParents()))(t) // no container, which a server may delete
		other := newElection(t, env.Client(t), path)
		e := newElection(t, route.Client(t), path)
		mustResign(t, mustLead(t, other)) // the clients know of the election
		expect := func(what string, want ...fault.Op) {
			t.Helper()
			recipetest.MustHaveSent(t, what, route, path, want...)
		}
		route.ResetRequests()
		mustResign(t, mustLead(t, e))
		expect("Campaign and Release of the only candidate", fault.Create, fault.GetChildren, fault.Delete)

		term := mustLead(t, other)
		done := recipetest.Later(t.Context(), e.Campaign)
		recipetest.AwaitChildren(t, env.Client(t), path, 2)
		zktest.Eventually(t, recipetest.Generous, "it waits", func() bool { return len(recipetest.Ops(route, path)) >= 4 })
		expect("Campaign behind one candidate", fault.Create, fault.GetChildren, fault.GetData, fault.GetData)
		mustResign(t, term)
		term = must.Receive(t, done, "the hand-off").Lease
		expect("hand-off, from the event")
		mustResign(t, term)
		route.ResetRequests()

		term = mustLead(t, other)
		behind := recipetest.Later(t.Context(), other.Campaign)
		recipetest.AwaitChildren(t, env.Client(t), path, 2)
		if all, err := e.Participants(t.Context()); err != nil || len(all) != 2 {
			t.Errorf("participants %v, %v; want 2", all, err)
		}
		expect("Participants, 2", fault.GetChildren, fault.MultiRead)
		if _, ok, err := e.Leader(t.Context()); err != nil || !ok {
			t.Errorf("leader: %v, %v", ok, err)
		}
		expect("Leader", fault.GetChildren, fault.GetData)
		mustResign(t, term)
		mustResign(t, must.Receive(t, behind, "the next term").Lease)
	}, zkenv.Only("on a busy machine a hold lasts 50 ms, and looks at its znode", zkenv.Embedded, zkenv.EmbeddedEnsemble))
}
