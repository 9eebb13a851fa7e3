package barrier_test

import (
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
)

// A lease belongs to the barrier at its path in the ensemble, whatever view it came from. Another recipe's lease
// belongs to none.
func TestLeaveInAnotherView(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		a, b := must.Get(c.Namespace(path[1:]+"/a"))(t), must.Get(c.Namespace(path[1:]+"/b"))(t)
		mutex := must.Get(lock.NewMutex(a, "/step"))(t)
		l := must.Get(newDouble(t, a, "/step", 1).Enter(t.Context()))(t)
		recipetest.Says(t, newDouble(t, b, "/step", 1).Leave(t.Context(), l), "must be one of this double barrier")
		must.OK(t, l.Err())
		must.OK(t, newDouble(t, c, path+"/a/step", 1).Leave(t.Context(), l))
		held := must.Get(mutex.Lock(t.Context()))(t)
		recipetest.Says(t, newDouble(t, a, "/step", 1).Leave(t.Context(), held), "must be one of this double barrier")
		must.OK(t, held.Release(t.Context()))
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}
