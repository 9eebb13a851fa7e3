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
