package group_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestCloseLeavesAnotherClientsMember: during an outage another process takes the member's id.
func TestCloseLeavesAnotherClientsMember(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route, other, path := env.Route(t), env.Client(t), recipetest.Path(t)
		client := route.Client(t)
		g := newGroup(t, client, path)
		mustJoin(t, g, "a", "ours")
		route.Refuse()
		route.Cut()
		must.OK(t, other.Delete(t.Context(), path+"/a"))
		must.Get(other.Create(t.Context(), path+"/a", []byte("theirs"), framework.Ephemeral(), framework.WithParents()))(t)
		zktest.Eventually(t, recipetest.Generous, "the outage", func() bool { return client.State() != framework.Connected })
		route.Heal()
		must.OK(t, g.Close(t.Context()))
		must.OK(t, other.Sync(t.Context(), path))
		if data, _ := must.Get2(other.Get(t.Context(), path+"/a"))(t); string(data) != "theirs" {
			t.Errorf("data %q, want theirs", data)
		}
	})
}
