package node_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// As TestPersistentNode.testEphemeralSequentialWithProtectionReconnection.
func TestCuratorSequentialKeepsItsNumberWithinItsSession(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		n := kept(t, c, path, "alive", node.Sequential())
		mustAwait(t, n)
		seen := follow(t, n)
		before := n.Path()
		st := mustHold(t, observer, c, before, "alive")
		route.Cut()
		seen.awaitKinds(t, "Made Away Made")
		if n.Path() != before {
			t.Errorf("path %s after a reconnection, want %s", n.Path(), before)
		}
		if after := mustHold(t, observer, c, before, "alive"); after.Czxid != st.Czxid {
			t.Error("the znode was created again within its session")
		}
	})
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
