package leader

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/locktel"
)

// Run leads whenever it can, until ctx ends: it campaigns, calls lead, resigns and campaigns again. If
// the term is lost, the context of lead ends with a [*lease.LostError] as its cause, and lead has to
// stop then. When lead returns nil, Run resigns and is a candidate again, behind all others. Outages
// do not end Run. It returns
//
//   - an error of lead that is not the end of its context, as it is, joined with the error of the
//     resignation;
//   - an error that wraps ctx's, when ctx has ended, and [framework.ErrClosed], when the client is
//     closed;
//   - a permanent error, such as [ErrMixed] or [framework.ErrNoAuth].
//
// A resignation waits until the znode is gone, also after ctx has ended, but no longer than 10 s.
// After that its deletion goes on in the background. If lead panics, Run resigns, and the panic
// reaches the caller. Run panics if lead is nil. The term's Fence is its number.
func (e *Election) Run(
	ctx context.Context, lead func(ctx context.Context, term *lease.Lease) error,
) error {
	if lead == nil {
		panic("leader: Run with a nil function")
	}
	waits := contender.Pauses.NewBackOff()
	for {
		term, err := e.campaign(ctx)
		switch {
		case err == nil:
			waits.Reset()
			if err := e.serve(ctx, term, lead); err != nil {
				return err
			}
		case ctx.Err() != nil || !passes(err):
			return recipe.CallError(ctx, "run", e.path, err)
		default:
			e.warn("campaign failed", err)
			select { // Campaign returns ctx's error
			case <-time.After(waits.NextBackOff()):
			case <-ctx.Done():
			}
		}
	}
}

// serve calls lead and resigns. It returns an error if Run has to end.
func (e *Election) serve(
	ctx context.Context, term *lease.Lease, lead func(context.Context, *lease.Lease) error,
) error {
	var failed error
	err := contender.Work(ctx, term, func(ctx context.Context, term *lease.Lease) error {
		failed = unlessEnded(ctx, lead(ctx, term))
		return failed
	})
	switch {
	case failed != nil:
		return err
	case err != nil && !errors.Is(err, lease.ErrLost) && !errors.Is(err, lease.ErrReleased):
		e.warn("resignation is not confirmed: it goes on in the background", err)
	}
	return nil
}

// unlessEnded returns nil if err says no more than that ctx has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// passes reports whether a campaign failed with err for a condition that passes.
func passes(err error) bool {
	return framework.Retryable(err) || errors.Is(err, framework.ErrReadOnly)
}

func (e *Election) warn(message string, err error) {
	e.queue.Client.Logger().Named("leader").Warn(message,
		zap.String(locktel.AttrPath, e.queue.Client.AbsolutePath(e.path)), zap.Error(err))
}
