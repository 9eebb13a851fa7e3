package barrier_test

import (
	"context"
	"errors"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
)

// mustBeRefused fails the test unless the error names the refusal alone.
func mustBeRefused(t testing.TB, what string, err error) {
	t.Helper()
	if !errors.Is(err, framework.ErrNoAuth) || errors.Is(err, framework.ErrClosed) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: %v, want ErrNoAuth", what, err)
	}
}

// TestWaitAtARefusedBarrier: the client may not read the barrier, from the beginning or after its
// connection was cut. Wait returns the reason, and waits again when the client may.
func TestWaitAtARefusedBarrier(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
		must.Get(other.Create(t.Context(), path, nil, framework.WithParents()))(t)
		b := must.Get(barrier.New(route.Client(t), path))(t)
		ctx := recipetest.Patient(t)
		wait := func() <-chan error {
			done := waitLater(ctx, b)
			env.Quiesce()
			return done
		}
		recipetest.Permit(t, other, path, acl.All&^acl.Read)
		mustBeRefused(t, "Wait", must.Receive(t, wait(), "the end of Wait"))
		recipetest.Permit(t, other, path, acl.All)
		waiting := wait()
		recipetest.Permit(t, other, path, acl.All&^acl.Read)
		route.Cut()
		env.Quiesce()
		recipetest.Permit(t, other, path, acl.All)
		env.Quiesce()
		if len(waiting) > 0 { // it read before it was permitted; a server may also resume the watch without a look
			mustBeRefused(t, "Wait after a reconnection", <-waiting)
			waiting = wait()
		}
		if len(waiting) > 0 {
			t.Fatalf("Wait has returned %v, and the barrier is set", <-waiting)
		}
		must.OK(t, other.Delete(t.Context(), path))
		must.OK(t, must.Receive(t, waiting, "the end of Wait"))
	}, zkenv.Only("the refusal is every server's", zkenv.Embedded, zkenv.Standalone))
}

// TestEnterWhereMembersMayNotBeListed: Enter returns the reason and leaves no member, and enters when the
// client may list them.
func TestEnterWhereMembersMayNotBeListed(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
		must.Get(other.Create(t.Context(), path, nil, framework.WithParents()))(t)
		d := newDouble(t, route.Client(t), path, 2)
		recipetest.Permit(t, other, path, acl.All&^acl.Read)
		one := must.Receive(t, recipetest.Later(t.Context(), d.Enter), "the end of Enter")
		mustBeRefused(t, "Enter", one.Err)
		recipetest.Permit(t, other, path, acl.All)
		recipetest.AwaitChildren(t, other, path, 0)
		first := recipetest.Later(t.Context(), d.Enter)
		recipetest.AwaitChildren(t, other, path, 1)
		recipetest.Permit(t, other, path, acl.All&^acl.Read)
		route.Cut()
		env.Quiesce()
		recipetest.Permit(t, other, path, acl.All)
		second := recipetest.Later(t.Context(), newDouble(t, other, path, 2).Enter)
		if got := must.Receive(t, first, "the end of Enter"); got.Err != nil { // it listed before it was permitted
			mustBeRefused(t, "Enter after a reconnection", got.Err)
			recipetest.Granted(t, recipetest.Later(t.Context(), d.Enter))
		}
		recipetest.Granted(t, second)
	}, zkenv.Only("the refusal is every server's", zkenv.Embedded, zkenv.Standalone))
}
