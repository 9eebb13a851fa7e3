package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestNodeRequests counts what a Node asks of the server.
func TestNodeRequests(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		mustParents(t, c, path)
		route.ResetRequests()
		check := func(what string, want ...fault.Op) {
			t.Helper()
			if got := requests(route); !slices.Equal(got, want) {
				t.Errorf("%s: requests %v, want %v", what, got, want)
			}
			route.ResetRequests()
		}
		n := kept(t, c, path, "alive")
		mustAwait(t, n)
		check("made", fault.Create, fault.Exists)
		env.Quiesce()
		check("kept")
		if err := n.Set(recipetest.Patient(t), []byte("changed")); err != nil {
			t.Fatal(err)
		}
		check("set", fault.SetData, fault.Exists)
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("closed", fault.Sync, fault.Exists, fault.Delete)
	}, zkenv.AllOperations("it counts requests"))
}

// The watch is on its way before the reply to the create.
func TestNodeIsMadeInOneRoundTrip(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
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
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		mustParents(t, c, path)
		route.ResetRequests()
		const ttl = 10 * time.Second
		mustAwait(t, kept(t, c, path, "alive", node.WithTTL(ttl)))
		want := []fault.Op{fault.Create, fault.Exists, fault.SetData, fault.Create}
		if got := requests(route); !slices.Equal(got, want) {
			t.Errorf("made: requests %v, want %v", got, want)
		}
		route.ResetRequests()
		<-time.After(3*ttl + time.Second)
		if got := requests(route); len(got) != 6 || slices.ContainsFunc(got, func(op fault.Op) bool { return op != fault.SetData }) {
			t.Errorf("kept for three times its TTL: requests %v, want 6 writes", got)
		}
	}, zkenv.Only("half a minute has to pass", zkenv.Embedded, zkenv.EmbeddedEnsemble), zkenv.AllOperations("TTL is one of them"))
}
