package semaphore_test

import (
	"slices"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// ops is [recipetest.Ops], sorted: the turn's deletion and the release are in no order.
func ops(route *zkenv.Route, path string) []fault.Op {
	return slices.Sorted(slices.Values(recipetest.Ops(route, path)))
}

// TestRequestsOfASemaphore counts, at the server's door, what the page of the recipe says.
func TestRequestsOfASemaphore(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		c, other := route.Client(t), newSemaphore(t, env.Client(t), path, 3)
		s := newSemaphore(t, c, path, 3)
		for _, dir := range []string{"/locks", "/leases"} { // no container, so it stays
			must.Get(c.Create(t.Context(), path+dir, nil, framework.WithParents()))(t)
		}
		expect := func(what string, want ...fault.Op) {
			t.Helper()
			slices.Sort(want)
			got := ops(route, path)
			if !env.Kind().Virtual() { // a permit that is held for longer than 50 ms is watched
				got = slices.DeleteFunc(got, func(op fault.Op) bool { return op == fault.GetData })
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: requests %v, want %v", what, got, want)
			}
			route.ResetRequests()
		}
		route.ResetRequests()
		mustRelease(t, mustAcquire(t, s, 1))
		expect("one permit and back", fault.Create, fault.GetChildren,
			fault.Create, fault.MultiRead, fault.Delete, fault.Delete)
		mustRelease(t, mustAcquire(t, s, 3))
		expect("three permits and back", fault.Create, fault.GetChildren,
			fault.Multi, fault.MultiRead, fault.Delete, fault.Multi)

		held := mustAcquire(t, other, 3)
		recipetest.AwaitChildren(t, c, path+"/locks", 0)
		route.ResetRequests()
		if _, err := s.TryAcquire(t.Context(), 1); err == nil {
			t.Error("TryAcquire: granted a permit that is held")
		}
		expect("a refused TryAcquire", fault.GetChildren, fault.GetChildren)
		done := acquireLater(t.Context(), s, 2)
		recipetest.AwaitChildren(t, env.Client(t), path+"/leases", 5)
		env.Quiesce()
		route.ResetRequests()
		mustRelease(t, held)
		got := recipetest.Granted(t, done)
		recipetest.AwaitChildren(t, env.Client(t), path+"/locks", 0)
		expect("the hand-off, from the event", fault.GetChildren, fault.Delete)
		mustRelease(t, got)
	}, zkenv.Only("its requests are counted where nothing else delays them", zkenv.Embedded, zkenv.Standalone))
}

// TestTheNumberCostsOneRead counts the requests of a semaphore whose number is in a znode.
func TestTheNumberCostsOneRead(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		s := newSemaphore(t, route.Client(t), path, 3, semaphore.WithPermitsAt(path+"-number"))
		mustRelease(t, mustAcquire(t, s, 1))
		route.ResetRequests()
		mustRelease(t, mustAcquire(t, s, 1))
		if got, want := ops(route, path+"-number"), []fault.Op{fault.GetData}; !slices.Equal(got, want) {
			t.Errorf("requests about the number: %v, want %v", got, want)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}
