package barrier_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/zkenv"
)

// The first member in the order of the names dies when the second one has released its place and
// waits. The second one is then the first, and continues to wait for the third.
func TestLeaveWaitsWhenTheFirstMemberDies(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, c := recipetest.Path(t), env.Client(t)
		d := newDouble(t, c, path, 3)
		entering := []<-chan recipetest.Outcome{
			recipetest.Later(t.Context(), d.Enter), recipetest.Later(t.Context(), d.Enter), recipetest.Later(t.Context(), d.Enter),
		}
		var leases []*lease.Lease
		for _, done := range entering {
			leases = append(leases, recipetest.Granted(t, done))
		}
		slices.SortFunc(leases, func(a, b *lease.Lease) int { return cmp.Compare(a.Node(), b.Node()) })
		second := leaveLater(t.Context(), d, leases[1])
		recipetest.AwaitChildren(t, c, path, 3) // ready, the first and the third
		env.Quiesce()
		must.OK(t, c.Delete(t.Context(), leases[0].Node()))
		env.Quiesce()
		if len(second) > 0 {
			t.Errorf("Leave has returned while the third member is in: %v", <-second)
			return
		}
		left(t, leaveLater(t.Context(), d, leases[2]))
		left(t, second)
	}, zkenv.Only("the order of events is the client's", zkenv.Embedded, zkenv.Standalone))
}
