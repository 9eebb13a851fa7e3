// Package rendezvous is the protocol of Apache Curator's DistributedDoubleBarrier: members begin
// together and end together. Package barrier is made of it.
package rendezvous

import (
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// readyName is the znode that exists from the entry of the last member until all have left.
const readyName = "ready"

// A Gate is the place where members meet. It is immutable.
type Gate struct {
	Client   *framework.Client
	Path     string
	Members  int                      // that have to enter
	Creation []framework.CreateOption // of znodes
}

// Enter waits until all members are in, and returns the caller's place. If the session ends
// meanwhile, Enter enters again in the next session. If it fails, the place is gone, or its deletion
// continues in the background.
func (g *Gate) Enter(ctx context.Context, seen *telemetry.Acquire) (*waitqueue.Grant, error) {
	for {
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
	}
}

// ready returns the path of the znode that lets members in.
func (g *Gate) ready() string { return framework.JoinPath(g.Path, readyName) }

// creation returns the options of a create.
func (g *Gate) creation(more ...framework.CreateOption) []framework.CreateOption {
	return slices.Concat(g.Creation, more)
}

// Except returns err, or nil if err is the one that is no failure.
func Except(err, noFailure error) error {
	if errors.Is(err, noFailure) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
