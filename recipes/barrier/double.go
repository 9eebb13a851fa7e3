package barrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// A Double lets members begin together and end together. Its methods may be called concurrently.
type Double struct { // immutable
	gate gate
	tel  telemetry.Lock
}

// NewDouble returns the double barrier at path, and sends nothing yet. members is how many have to
// enter, at least 1; all processes have to give the same number. A further member is let in, and
// counts. If arguments are faulty, NewDouble returns all faults.
func NewDouble(c *framework.Client, path string, members int, opts ...Option) (*Double, error) {
	cfg, err := newConfig(c, path, opts)
	if members < 1 {
		err = errors.Join(err, fmt.Errorf("members %d: must be at least 1", members))
	}
	if err != nil {
		return nil, recipe.Error(c, "new double barrier", path, err)
	}
	tel := telemetry.Of(c, telemetry.TypeDouble, cfg.Name, c.AbsolutePath(path))
	return &Double{gate{client: c, path: path, members: members, acl: cfg.WithACL()}, tel}, nil
}

// Enter waits until all members are in, and returns the lease of the caller's place. ctx bounds the
// wait only. If ctx ends first, the error is a [*lease.WaitError] that wraps ctx's error. The
// caller's znode is then gone, or its deletion continues in the background; until it is gone, members of
// other processes count it. If the session ends while Enter waits, it enters again in the next session. The
// lease is lost with its session. [Double.Leave] releases it. If a Leave of this client ended before the others left,
// Enter first waits until the members that it waited for, or those that were in if it could not list them, have left,
// or their sessions have ended.
func (d *Double) Enter(ctx context.Context) (*lease.Lease, error) {
	usercall.Require("ctx", ctx != nil)
	l, err := d.enter(ctx)
	return l, recipe.CallError(ctx, d.gate.client, "enter", d.gate.path, err)
}

func (d *Double) enter(ctx context.Context) (*lease.Lease, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	ctx, acq := d.tel.Begin(ctx)
	return contender.Observe(ctx, acq, func() (*lease.Lease, error) {
		grant, err := d.gate.enter(ctx, acq)
		if err != nil {
			return nil, contender.WaitError(ctx, d.gate.client, d.gate.path, -1, nil, err)
		}
		return d.lease(ctx, grant, acq), nil
	})
}

// lease returns the lease of a place.
func (d *Double) lease(ctx context.Context, grant *waitqueue.Grant, acq *telemetry.Acquire) *lease.Lease {
	return contender.NewLease(hold.Options{
		Client: grant.Client,
		Path:   d.gate.path,
		Grant:  &place{Grant: contender.Grant{Grant: grant, Of: d.gate.path, Recipe: recipe}, gate: &d.gate},
		Znode:  &grant.Znode,
		Hooks:  acq.Granted(ctx, grant.Fence(), grant.Session.Session()),
	}, lease.AtDeadline, nil)
}

// Leave releases the lease of [Double.Enter], and waits until all members that were in have left and
// the caller's znode is gone, across outages. If the lease was lost before the call or while it
// waited, the error wraps [lease.ErrLost] and Leave does not wait; the client's next Enter waits instead,
// until the others have left. If ctx ends first, the error
// wraps ctx's, and the lease is released nevertheless: see [lease.Lease.Release]. If the session ends
// during Leave or Release, the znode is deleted in the client's next session.
func (d *Double) Leave(ctx context.Context, l *lease.Lease) error {
	usercall.Require("ctx", ctx != nil)
	if l == nil {
		return recipe.Error(d.gate.client, "leave", d.gate.path, errors.New("lease: must not be nil"))
	}
	p, ours := contender.ShareOf(l).Hold().Grant.(*place)
	if !ours || p.gate.full() != d.gate.full() {
		return recipe.Error(d.gate.client, "leave", d.gate.path, errors.New("lease: must be one of this double barrier"))
	}
	return recipe.CallError(ctx, d.gate.client, "leave", d.gate.path, d.gate.leave(ctx, l, p))
}

// Path returns the double barrier's path.
func (d *Double) Path() string { return d.gate.path }
