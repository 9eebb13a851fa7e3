package leader

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// An Election is a path whose candidates lead one after another, in the order in which they came.
// Every call of Campaign or Run is a candidate of its own. Its methods may be called concurrently.
type Election struct { // immutable
	queue *waitqueue.Queue
	path  string
	cfg   config
	tel   telemetry.Lock
}

// New returns the election at path; nothing is sent yet. The path is the directory of the candidates'
// znodes: it and its parents are created, as containers, when they are needed. Where arguments are
// faulty New returns all faults.
func New(c *framework.Client, path string, opts ...Option) (*Election, error) {
	cfg, err := newConfig(c, path, opts)
	if err != nil {
		return nil, recipe.Error("new election", path, err)
	}
	kind, refused := cfg.format.kinds()
	return &Election{
		queue: &waitqueue.Queue{
			Client: c, Dir: path, Kinds: []string{kind}, Refused: refused, ACL: cfg.acl,
			Predecessor: waitqueue.ExclusivePredecessor,
		},
		path: path,
		cfg:  cfg,
		tel:  telemetry.Of(c, telemetry.TypeLeader, cfg.name, c.AbsolutePath(path)),
	}, nil
}

// Campaign waits until the caller leads, and returns the lease of its term. The lease's Fence is the
// number of the term: it grows from leader to leader. Release resigns. ctx bounds the wait alone. If
// ctx ends first, the error is a [*lease.WaitError], and the candidate is gone or its deletion goes on
// in the background. If the session ends while Campaign waits, the caller is a candidate in the next
// session, behind all others. If candidates of the other format are on the path
// when it comes, it returns [ErrMixed]. Other errors are those of the client, when its policy is
// exhausted.
func (e *Election) Campaign(ctx context.Context) (*lease.Lease, error) {
	l, err := e.campaign(ctx)
	return l, recipe.CallError(ctx, "campaign", e.path, err)
}

func (e *Election) campaign(ctx context.Context) (*lease.Lease, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	ctx, seen := e.tel.Begin(cause.Inside(ctx))
	return contender.Observed(ctx, seen, func() (*lease.Lease, error) {
		a := e.queue.NewAttempt(e.queue.Kinds[0], func() []byte { return e.cfg.data(seen) })
		a.Observer = contender.ObserverOf(seen)
		granted := false
		defer func() {
			if !granted {
				a.Withdraw()
			}
		}()
		grant, err := a.Run(ctx)
		if err == nil && ctx.Err() != nil {
			err = ctx.Err() // both at once: a caller that has gone gets no lease
		}
		if err != nil {
			return nil, contender.WaitErrorOf(ctx, e.queue, e.path, a, 0, err)
		}
		granted = true
		return contender.NewLease(hold.Options{
			Client: grant.Client,
			Path:   e.path,
			Grant:  &contender.Grant{Grant: grant, Of: e.path, OpError: recipe.Error},
			Znode:  &grant.Znode,
			Hooks:  seen.Granted(ctx, grant.Fence(), grant.Session.Session()),
			Ended:  func(*hold.Hold, error) {},
		}, e.cfg.lossPolicy, e.cfg.revoked), nil
	})
}

// Path returns the election's path.
func (e *Election) Path() string { return e.path }
