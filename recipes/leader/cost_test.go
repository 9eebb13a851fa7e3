package leader_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// ops returns the kinds of the requests on the route that are about the path, or what is below it,
// since the log was reset. Heartbeats, which the clock sends, are not.
func ops(route *zkenv.Route, path string) []fault.Op {
	about := func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") }
	var all []fault.Op
	for _, rq := range route.Requests() {
		part := func(p fault.Part) bool { return about(p.Path) }
		if about(rq.Path) || slices.ContainsFunc(rq.Parts, part) {
			all = append(all, rq.Op)
		}
	}
	return all
}

// TestRequestsOfAnElection counts, at the server's door, what the page of the recipe promises.
func TestRequestsOfAnElection(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), pathOf(t)
		must.Get(env.Client(t).Create(t.Context(), path, nil, framework.WithParents()))(t) // no container, which a server may delete
		other := newElection(t, env.Client(t), path)
		e := newElection(t, route.Client(t), path)
		mustResign(t, mustLead(t, other)) // the clients know of the election
		expect := func(what string, want ...fault.Op) {
			t.Helper()
			if got := ops(route, path); !slices.Equal(got, want) {
				t.Errorf("%s: requests %v, want %v", what, got, want)
			}
			route.ResetRequests()
		}
		route.ResetRequests()
		mustResign(t, mustLead(t, e))
		expect("Campaign and Release of the only candidate", fault.Create, fault.GetChildren, fault.Delete)

		term := mustLead(t, other)
		done := campaignLater(t.Context(), e)
		awaitCandidates(t, env.Client(t), path, 2)
		zktest.Eventually(t, generous, "it waits", func() bool { return len(ops(route, path)) >= 4 })
		expect("Campaign behind one candidate", fault.Create, fault.GetChildren, fault.GetData, fault.GetData)
		mustResign(t, term)
		term = must.Receive(t, done, "the hand-off").term
		expect("hand-off, from the event")
		mustResign(t, term)
		route.ResetRequests()

		term = mustLead(t, other)
		behind := campaignLater(t.Context(), other)
		awaitCandidates(t, env.Client(t), path, 2)
		if all, err := e.Participants(t.Context()); err != nil || len(all) != 2 {
			t.Errorf("participants %v, %v; want 2", all, err)
		}
		expect("Participants, 2", fault.GetChildren, fault.MultiRead)
		if _, ok, err := e.Leader(t.Context()); err != nil || !ok {
			t.Errorf("leader: %v, %v", ok, err)
		}
		expect("Leader", fault.GetChildren, fault.GetData)
		mustResign(t, term)
		mustResign(t, must.Receive(t, behind, "the next term").term)
	}, zkenv.AllOperations("it counts requests"))
}
