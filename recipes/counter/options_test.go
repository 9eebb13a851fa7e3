package counter_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// Options and the view act on the Counter that they were given to, whatever other Counters of the path
// the client has.
func TestEachCounterHasItsOwnOptions(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		mustBe(t, newCounter(t, c, path), 0)
		private := acl.Entry{Perms: acl.Read | acl.Write | acl.Create, Scheme: "world", ID: "anyone"}
		mustAdd(t, newCounter(t, c, path, recipes.WithACL(private)), 1)
		if list, _, err := c.ACL(t.Context(), path); err != nil || len(list) != 1 || list[0] != private {
			t.Errorf("ACL %v, %v; want the second Counter's", list, err)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded, zkenv.Standalone))
}

func TestACounterInASessionBindsNoOther(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		c := route.Client(t)
		bound := newCounter(t, c.InSession(c.Session().ID), path)
		mustAdd(t, bound, 1)
		route.Expire(t)
		n := newCounter(t, c, path)
		if v, err := n.Add(t.Context(), 1); err != nil || v != 2 {
			t.Errorf("Add of a Counter in no session: %d, %v", v, err)
		}
	}, zkenv.Breakable(), zkenv.Only("the server has no part in it", zkenv.Embedded, zkenv.Standalone))
}

// CompareAndSet against a number that was true: the znode was deleted and created again, with the
// version that the Counter knows.
func TestCompareAndSetOfARecreatedZnode(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, other, path := env.Client(t), env.Client(t), recipetest.Path(t)
		n := newCounter(t, c, path)
		must.OK(t, n.Set(t.Context(), 1))
		must.OK(t, other.Delete(t.Context(), path))
		must.OK(t, newCounter(t, other, path).Set(t.Context(), 2))
		if swapped, err := n.CompareAndSet(t.Context(), 2, 3); err != nil || !swapped {
			t.Errorf("CompareAndSet of the present number: %v, %v", swapped, err)
		}
		mustBe(t, n, 3)
	}, zkenv.Only("the server has no part in it", zkenv.Embedded, zkenv.Standalone))
}

// A value that may not be read for a while: the sequence shows that once, and goes on.
func TestAllOutlivesARefusal(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv)
		v := newValue(t, c, "/value")
		must.OK(t, v.Set(t.Context(), []string{"a"}))
		recipetest.Permit(t, c, "/value", acl.All&^acl.Read)
		time.AfterFunc(time.Hour, func() { _, _ = c.SetACL(t.Context(), "/value", acl.Open(), framework.AnyVersion) })
		refusals := 0
		for value, err := range v.All(t.Context()) {
			if err == nil && len(value) == 1 {
				break
			}
			refusals++
		}
		if refusals != 1 {
			t.Errorf("%d refusals, want 1", refusals)
		}
	})
}

// The client keeps nothing of Counters that the program has dropped.
func TestCountersLeaveNothing(t *testing.T) {
	c := must.Get(framework.NewClient("localhost:1"))(t)
	defer c.Close()
	const counters = 20000
	heap := func() uint64 {
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range counters {
		newCounter(t, c, recipetest.Path(t))
	}
	var kept int64
	for range 50 {
		if kept = int64(heap()) - int64(before); kept < counters*100 { // a map keeps its size
			return
		}
		<-time.After(20 * time.Millisecond) // no event says that the clean-up is over
	}
	t.Errorf("%d bytes are kept of %d Counters", kept, counters)
}
