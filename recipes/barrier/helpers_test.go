package barrier_test

import (
	"context"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/zkenv"
)

func newDouble(t testing.TB, c *framework.Client, path string, members int) *barrier.Double {
	t.Helper()
	return must.Get(barrier.NewDouble(c, path, members))(t)
}

// bothEnter has one member come, and then the other, which lets both in.
func bothEnter(t testing.TB, env *zkenv.Env, one, other *barrier.Double) (first, last *lease.Lease) {
	t.Helper()
	entering := recipetest.Later(t.Context(), one.Enter)
	env.Quiesce()
	last = recipetest.Granted(t, recipetest.Later(t.Context(), other.Enter))
	return recipetest.Granted(t, entering), last
}

// mustWait fails the test if a member is let in while the others have not come.
func mustWait(t testing.TB, env *zkenv.Env, what string, entering ...<-chan recipetest.Outcome) {
	t.Helper()
	env.Quiesce()
	for _, one := range entering {
		if len(one) > 0 {
			t.Fatalf("%s: a member was let in, and the last one has not come", what)
		}
	}
}

// leaveLater calls Leave on a goroutine of its own.
func leaveLater(ctx context.Context, d *barrier.Double, l *lease.Lease) <-chan error {
	done := make(chan error, 1)
	go func() { done <- d.Leave(ctx, l) }()
	return done
}

// leaveInTurn leaves by the first, which waits until the last has left.
func leaveInTurn(t testing.TB, first *barrier.Double, one *lease.Lease, last *barrier.Double, other *lease.Lease) {
	t.Helper()
	leaving := leaveLater(t.Context(), first, one)
	left(t, leaveLater(t.Context(), last, other))
	left(t, leaving)
}

// left waits for the end of leaveLater.
func left(t testing.TB, done <-chan error) {
	t.Helper()
	must.OK(t, must.Receive(t, done, "the end of Leave"))
}
