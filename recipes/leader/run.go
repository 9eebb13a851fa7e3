package leader

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/boundary"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/locktel"
)

// again is the least time from a call of lead to the next candidacy. So a lead that returns at once does
// not load the ensemble.
const again = time.Second

// Run leads whenever it can, until ctx ends: it campaigns, calls lead, resigns and campaigns again. If
// the term is lost, the context of lead ends with a [*lease.LostError] as its cause, and lead has to
// stop then. When lead returns nil, Run resigns and is a candidate again, behind all others, a second
// after lead was called at the earliest. Outages do not end Run. It returns
//
//   - an error of lead that is not the end of its context, as it is. A [*lease.LostError] is joined if
//     the term was lost before lead returned, and a server's refusal of the resignation;
//   - an error that wraps ctx's, when ctx has ended, and [framework.ErrClosed], when the client is
//     closed;
//   - a permanent error, such as [ErrMixed] or [framework.ErrNoAuth].
//
// A resignation waits until the znode is gone, also after ctx has ended, but no longer than 250 ms.
// After that its deletion continues in the background. If lead has not returned ten seconds after its
// context has ended, Run logs a warning. If lead panics, Run resigns, and the panic
// reaches the caller. If lead is nil, Run returns an error. The term's Fence is its number.
func (e *Election) Run(
	ctx context.Context, lead func(ctx context.Context, term *lease.Lease) error,
) error {
	usercall.Require("ctx", ctx != nil)
	if err := boundary.Function("lead", lead != nil); err != nil {
		return recipe.Error("run", e.path, err)
	}
	failed, err := e.contest.Repeat(ctx, again, e.warn, lead)
	if failed != nil {
		return failed
	}
	return recipe.CallError(ctx, "run", e.path, err)
}

func (e *Election) warn(message string, err error) {
	e.queue.Client.Logger().Named("leader").Warn(message,
		zap.String(locktel.AttrPath, e.queue.Client.AbsolutePath(e.path)), zap.Error(err))
}
