package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestLeaveWaitsAfterAnOutage: the connection breaks at one of the requests of Leave, and the client's
// policy does not repeat the request. Leave waits for the other member nevertheless.
func TestLeaveWaitsAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"the reply to the listing is lost":  {Op: fault.GetChildren, Action: fault.DropReply},
		"the listing is not sent":           {Op: fault.GetChildren, Action: fault.CutBefore},
		"the reply to the watch is lost":    {Op: fault.GetData, Action: fault.DropReply},
		"the reply to the deletion is lost": {Op: fault.Delete, Action: fault.DropReply},
		"the deletion is not sent":          {Op: fault.Delete, Action: fault.CutBefore},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
			d := newDouble(t, route.Client(t, framework.WithRetry(retry.Never())), path, 2)
			stays := recipetest.Later(t.Context(), newDouble(t, other, path, 2).Enter)
			recipetest.AwaitChildren(t, other, path, 1)
			l := recipetest.Granted(t, recipetest.Later(t.Context(), d.Enter))
			staying := recipetest.Granted(t, stays)
			rule.Path = path + "**"
			hit := route.Rules().Add(rule)
			done := leaveLater(t.Context(), d, l)
			select {
			case err := <-done:
				t.Errorf("Leave has returned %v, and another member is in", err)
			case <-time.After(time.Minute): // virtual
				must.OK(t, staying.Release(t.Context()))
				left(t, done)
			}
			if hit.Hits() == 0 {
				t.Error("no request was hit")
			}
		}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
	}
}

// TestALossOfAnotherLeaseKeepsNoMemberIn: the context ends at one of the requests of Leave, because another
// lease was lost. The member's own lease was not, so Leave releases it.
func TestALossOfAnotherLeaseKeepsNoMemberIn(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]fault.Op{"at the listing": fault.GetChildren, "at the watch": fault.GetData} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
			d := newDouble(t, route.Client(t), path, 2)
			stays := recipetest.Later(t.Context(), newDouble(t, other, path, 2).Enter)
			recipetest.AwaitChildren(t, other, path, 1)
			l := recipetest.Granted(t, recipetest.Later(t.Context(), d.Enter))
			staying := recipetest.Granted(t, stays)
			held := route.Rules().Add(fault.Rule{Op: op, Path: path + "**", Action: fault.HoldReply})
			ctx, cancel := context.WithCancelCause(t.Context())
			done := leaveLater(ctx, d, l)
			must.Receive(t, held.Hit(), "the request")
			cancel(&lease.LostError{Path: "/other", Cause: framework.ErrSessionDeadline})
			recipetest.Fails(t, "Leave", must.Receive(t, done, "the end of Leave"), context.Canceled)
			held.Release()
			recipetest.Fails(t, "lease after Leave", l.Err(), lease.ErrReleased)
			must.OK(t, staying.Release(t.Context()))
			recipetest.AwaitChildren(t, other, path, 1) // ready
		}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
	}
}
