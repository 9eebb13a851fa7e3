package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestNodeRequests counts what a Node asks of the server.
func TestNodeRequests(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, dir := env.Route(t), recipetest.Path(t)
		c, path := route.Client(t), dir+"/n"
		mustParents(t, c, path)
		route.ResetRequests()
		check := func(what string, want ...fault.Op) {
			t.Helper()
			recipetest.MustHaveSent(t, what, route, dir, want...)
		}
		n := kept(t, c, path, "alive")
		mustAwait(t, n)
		check("made", fault.Create, fault.Exists)
		env.Quiesce()
		check("kept")
		must.OK(t, n.Set(recipetest.Patient(t), []byte("changed")))
		check("set", fault.SetData, fault.Exists)
		must.OK(t, n.Close(t.Context()))
		check("closed", fault.Sync, fault.Exists, fault.Delete)
	})
}

// The watch is on its way before the reply to the create.
func TestNodeIsMadeInOneRoundTrip(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		mustParents(t, c, path)
		route.ResetRequests()
		stuck := route.Rules().Add(fault.Rule{Op: fault.Create, Path: path, Action: fault.HoldReply})
		n := kept(t, c, path, "alive")
		<-stuck.Hit()
		zktest.Eventually(t, recipetest.Generous, "the watch is asked for", func() bool { return route.Count(fault.Exists) == 1 })
		stuck.Release()
		mustAwait(t, n)
	})
}

// A Node with a TTL costs a request per half TTL.
func TestTTLRequests(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, dir := env.Route(t), recipetest.Path(t)
		c, path := route.Client(t), dir+"/n"
		mustParents(t, c, path)
		route.ResetRequests()
		const ttl = 10 * time.Second
		mustAwait(t, kept(t, c, path, "alive", node.WithTTL(ttl)))
		recipetest.MustHaveSent(t, "made", route, dir, fault.Create, fault.Exists, fault.SetData, fault.Create)
		<-time.After(3*ttl + time.Second)
		if got := recipetest.Ops(route, dir); len(got) != 6 || slices.ContainsFunc(got, func(op fault.Op) bool { return op != fault.SetData }) {
			t.Errorf("kept for three times its TTL: requests %v, want 6 writes", got)
		}
	}, zkenv.Only("half a minute has to pass", zkenv.Embedded, zkenv.EmbeddedEnsemble))
}
