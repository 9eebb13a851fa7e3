// Package rendezvous is the protocol of Apache Curator's DistributedDoubleBarrier: members begin
// together and end together. Package barrier is made of it.
package rendezvous

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A Gate is the place where members meet. It is immutable.
type Gate struct {
	Client  *framework.Client
	Path    string
	Members int                      // that have to enter
	ACL     []framework.CreateOption // of znodes: WithACL, or nothing
}

// Enter waits until all members are in, and returns the caller's place. If the session ends
// meanwhile, Enter enters again in the next session. If it fails, the place is gone, or its deletion
// continues in the background.
func (g *Gate) Enter(ctx context.Context, seen *telemetry.Acquire) (*waitqueue.Grant, error) {
	for rounds := pace.Rounds(); ; {
		e := &entry{gate: g, seen: seen}
		err := e.run(ctx)
		if err == nil && ctx.Err() != nil {
			err = ctx.Err() // both at once: after the end of ctx there is no place
		}
		if err == nil {
			return e.grant, nil
		}
		e.withdraw()
		if !errors.Is(err, framework.ErrSessionEnded) && !errors.Is(err, errGone) {
			return nil, err
		}
		if err := rounds.Wait(ctx, 1); err != nil {
			return nil, err
		}
	}
}

// Except returns err, or nil if err is the one that is no failure.
func Except(err, noFailure error) error {
	if errors.Is(err, noFailure) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
