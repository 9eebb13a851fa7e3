package node_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

func TestPersistentOutlivesTheNodeAndTheSession(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		n := kept(t, c, path, "first", node.Persistent())
		mustAwait(t, n)
		st := mustBeOf(t, observer, path, "first")
		session := c.Session().ID
		route.Expire(t)
		zktest.Eventually(t, recipetest.Generous, "the next session", func() bool { return c.Session().ID != session && n.Exists() })
		must.OK(t, n.Set(recipetest.Patient(t), []byte("second")))
		must.OK(t, n.Close(t.Context()))
		if after := mustBeOf(t, observer, path, "second"); after.Czxid != st.Czxid {
			t.Error("another znode after the session's end, want the same")
		}
	})
}

// A process that starts again finds its persistent znode.
func TestPersistentAdoptsAZnodeOfNoSession(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]framework.CreateOption{
		"persistent": framework.WithParents(),
		"container":  framework.Container(),
		"TTL":        framework.TTL(time.Hour),
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			c, observer, path := env.Client(t), env.Client(t), recipetest.Path(t)+"/n"
			must.Get(observer.Create(t.Context(), path, []byte("before"), how, framework.WithParents()))(t)
			n := kept(t, c, path, "ours", node.Persistent())
			mustAwait(t, n)
			mustBeOf(t, observer, path, "ours")
		})
	}
}

// The znode is there while it is kept, and gone afterwards; those that watch its data are not notified.
func TestTTLEndsWithTheNode(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c, observer, path := env.Client(t), env.Client(t), recipetest.Path(t)+"/n"
		n := kept(t, c, path, "alive", node.WithTTL(ttl))
		mustAwait(t, n)
		watch := must.Get(observer.Watch(t.Context(), path, framework.WatchData))(t)
		defer watch.Close()
		if !exists(t, observer, path+"/touch") {
			t.Error("no child touch once Await has returned")
		}
		zktest.Never(t, 3*ttl, "the end of the znode or an event", func() bool {
			return !exists(t, observer, path) || watch.Event() != 0
		})
		must.OK(t, n.Close(t.Context()))
		if !exists(t, observer, path) {
			t.Error("Close deleted the znode, want it to be there for its TTL")
		}
		zktest.Eventually(t, recipetest.Generous, "the end of the znode", func() bool { return !exists(t, observer, path) })
	})
}

// Curator's PersistentTtlNode leaves a container that never had a child, which stays forever.
func TestACrashBeforeTheFirstTouchLeavesNothing(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		route.Rules().Add(fault.Rule{Op: fault.SetData, Path: path + "/touch", Action: fault.CutBefore, Times: fault.Forever})
		n := must.Get(node.New(c, path, []byte("alive"), node.WithTTL(ttl)))(t)
		zktest.Eventually(t, recipetest.Generous, "the znode", func() bool { return exists(t, observer, path) })
		route.Refuse() // the process is gone
		route.Cut()
		if exists(t, observer, path+"/touch") {
			t.Fatal("the znode was touched: the test shows nothing")
		}
		zktest.Eventually(t, recipetest.Generous, "nothing left", func() bool { return !exists(t, observer, path) })
		route.Heal() // for Close, which has to reach a server
		must.OK(t, c.Close())
		must.OK(t, n.Close(t.Context()))
	})
}

// An outage outlasts the TTL.
func TestTTLIsMadeAgainAfterALongOutage(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		n := kept(t, route.Client(t), path, "alive", node.WithTTL(time.Second))
		mustAwait(t, n)
		route.Refuse()
		route.Cut()
		zktest.Eventually(t, recipetest.Generous, "the end of the znode", func() bool { return !exists(t, observer, path) })
		route.Heal()
		zktest.Eventually(t, recipetest.Generous, "another znode", func() bool { return n.Exists() && exists(t, observer, path+"/touch") })
		mustBeOf(t, observer, path, "alive")
	})
}

// TestPausesOfTTLBeginAgain: after a success, the first failure is followed by a short pause, whatever
// failed before.
func TestPausesOfTTLBeginAgain(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)+"/n"
		n := kept(t, route.Client(t), path, "alive", node.WithTTL(10*time.Second))
		mustAwait(t, n)
		refuse := func(times int) (took time.Duration) {
			refused := route.Rules().Add(fault.Rule{
				Op: fault.SetData, Path: path + "/touch", Action: fault.Refuse, Code: fault.NoAuth, Times: times,
			})
			must.Receive(t, refused.Hit(), "a refused touch")
			began, touched := time.Now(), route.Count(fault.SetData)
			zktest.Eventually(t, 10*time.Minute, "a touch that is not refused", func() bool {
				return refused.Hits() == times && route.Count(fault.SetData) >= touched+times && n.Await(t.Context()) == nil
			})
			return time.Since(began)
		}
		if took := refuse(8); took < 10*time.Second {
			t.Errorf("8 failures within %v: the pauses do not grow, and the test shows nothing", took)
		}
		if took := refuse(1); took > time.Second {
			t.Errorf("the attempt after one failure came %v later", took)
		}
	}, zkenv.Only("minutes have to pass", zkenv.Embedded))
}

// mustBeOf checks that the znode at the path has the data and belongs to no session.
func mustBeOf(t testing.TB, observer *framework.Client, path, data string) framework.Stat {
	t.Helper()
	must.OK(t, observer.Sync(t.Context(), path))
	got, st := must.Get2(observer.Get(t.Context(), path))(t)
	if string(got) != data {
		t.Errorf("data of %s: %q, want %q", path, got, data)
	}
	if st.EphemeralOwner > 0 {
		t.Errorf("%s belongs to the session %#x, want none", path, st.EphemeralOwner)
	}
	return st
}

// As TestPersistentTtlNode.testForcedDeleteOfTouchNode.
func TestCuratorTouchIsDeletedByForce(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c, operator, path := env.Client(t), env.Client(t), recipetest.Path(t)+"/n"
		n := kept(t, c, path, "alive", node.WithTTL(ttl))
		mustAwait(t, n)
		for range 3 {
			must.OK(t, operator.Delete(t.Context(), path+"/touch"))
			zktest.Eventually(t, recipetest.Generous, "the touch again", func() bool { return exists(t, operator, path+"/touch") })
		}
		if !exists(t, operator, path) {
			t.Error("the znode is gone")
		}
	})
}
