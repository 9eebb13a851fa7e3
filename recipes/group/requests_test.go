package group_test

import (
	"maps"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// counted returns how many requests of each kind the client sent since the last call.
func counted(route *zkenv.Route) map[fault.Op]int {
	counts := make(map[fault.Op]int)
	for _, r := range route.Requests() {
		switch r.Op {
		case fault.Ping, fault.Connect, fault.SetWatches, fault.CloseSession:
		default:
			counts[r.Op]++
		}
	}
	route.ResetRequests()
	return counts
}

// TestGroupRequests counts the requests of a group at the server.
func TestGroupRequests(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, other, route := recipetest.Path(t), env.Client(t), env.Route(t)
		for _, id := range []string{"a", "b", "c"} {
			opts := []framework.CreateOption{framework.Ephemeral(), framework.WithParents()}
			must.Get(other.Create(t.Context(), path+"/"+id, nil, opts...))(t)
		}
		c := route.Client(t)
		check := func(what string, want map[fault.Op]int) {
			t.Helper()
			env.Quiesce()
			if got := counted(route); !maps.Equal(got, want) {
				t.Errorf("%s: requests %v, want %v", what, got, want)
			}
		}
		must.OK(t, c.AwaitConnected(recipetest.Patient(t)))
		counted(route)
		g := newGroup(t, c, path)
		awaitMembers(t, g, "a= b= c=")
		check("a look at three members", map[fault.Op]int{
			fault.AddWatch: 1, fault.Multi: 1, // the watch, and what has been committed
			fault.GetData: 4, fault.GetChildren: 1, // the path and the members, whose lengths are not known yet, and the listing
		})
		must.Get(other.Set(t.Context(), path+"/a", []byte("1"), framework.AnyVersion))(t)
		awaitMembers(t, g, "a=1 b= c=")
		check("a change", map[fault.Op]int{fault.GetData: 1})
		must.OK(t, other.Delete(t.Context(), path+"/b"))
		awaitMembers(t, g, "a=1 c=")
		check("a member that leaves", nil)

		mustJoin(t, g, "d", "4")
		awaitMembers(t, g, "a=1 c= d=4")
		check("a member that joins, and is read", map[fault.Op]int{
			fault.Create: 1, fault.Exists: 1, fault.GetData: 1,
		})
	}, zkenv.Only("one server counts them all", zkenv.Embedded, zkenv.Standalone))
}
