package barrier_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestAMemberEntersAfterItHasOpened: a member enters again while another member is in. The connection
// breaks at a request that replaces the earlier ready, and the client's policy does not repeat the
// request. The member enters only if ready was created after it.
func TestAMemberEntersAfterItHasOpened(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"the replacement is not made":          {Op: fault.Multi, Action: fault.CutBefore},
		"the reply to the replacement is lost": {Op: fault.Multi, Action: fault.DropReply},
		"the reply to a question is lost":      {Op: fault.Exists, Action: fault.DropReply},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
			d := newDouble(t, route.Client(t, framework.WithRetry(retry.Never())), path, 2)
			first := recipetest.Later(t.Context(), newDouble(t, other, path, 2).Enter)
			recipetest.AwaitChildren(t, other, path, 1)
			l := recipetest.Granted(t, recipetest.Later(t.Context(), d.Enter))
			recipetest.Granted(t, first)
			must.OK(t, l.Release(t.Context()))
			rule.Path = path + "/ready"
			hit := route.Rules().Add(rule)
			again := recipetest.Granted(t, recipetest.Later(t.Context(), d.Enter))
			st, exists, err := other.Exists(t.Context(), rule.Path)
			if err != nil || !exists || st.Czxid <= again.Fence() {
				t.Errorf("a member of transaction %d has entered by the ready of %d (%v, %v)", again.Fence(), st.Czxid, exists, err)
			}
			if hit.Hits() == 0 {
				t.Error("no request was hit")
			}
		}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
	}
}
