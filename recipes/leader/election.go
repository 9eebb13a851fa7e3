package leader

import (
	"context"
	"errors"
	"iter"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/locktel"
)

// An Election is a path whose candidates lead one after another, in the order in which they came.
// Every call of Campaign or Run is a candidate of its own. Its methods may be called concurrently.
type Election struct{ contest contender.Contest } // immutable

// New returns the election at path; nothing is sent yet. The path is the directory of the candidates'
// znodes: it and its parents are created, as containers, when they are needed. Where arguments are
// faulty New returns all faults.
func New(c *framework.Client, path string, opts ...Option) (*Election, error) {
	cfg, err := newConfig(c, path, opts)
	if err != nil {
		return nil, recipe.Error(c, "new election", path, err)
	}
	kind := cfg.format.kind()
	queue := &waitqueue.Queue{
		Client: c, Dir: path, Kinds: []string{kind}, ACL: cfg.ACL,
		Predecessor: queuenode.ExclusivePredecessor,
	}
	return &Election{contender.Contest{
		Queue: queue, Path: path, Data: cfg.data, Recipe: recipe,
		Telemetry:  telemetry.Of(c, telemetry.TypeLeader, cfg.Name, c.AbsolutePath(path)),
		LossPolicy: cfg.LossPolicy, Revoked: cfg.Revocation,
	}}, nil
}

// Campaign waits until the caller leads, and returns the lease of its term. The lease's Fence is the
// number of the term: it grows from leader to leader. Release resigns. ctx bounds the wait alone. If
// ctx ends first, the error is a [*lease.WaitError], and the candidate is gone or its deletion goes on
// in the background. If the session ends while Campaign waits, the caller is a candidate in the next
// session, behind all others. If candidates of the other format are on the path
// when it comes, and none of its own was there before them, it returns [ErrMixed]. Other errors are
// those of the client, when its policy is exhausted.
func (e *Election) Campaign(ctx context.Context) (*lease.Lease, error) {
	l, err := e.contest.Acquire(ctx)
	return l, recipe.CallError(ctx, e.contest.Queue.Client, "campaign", e.contest.Path, err)
}

// again is the minimum interval from a call of lead to the next candidacy, so that a lead that returns
// at once does not load the ensemble.
const again = time.Second

// Run leads whenever it can, until ctx ends: it campaigns, calls lead, resigns and campaigns again. If
// the term is lost, the context of lead ends with a [*lease.LostError] as its cause, and lead has to
// stop then. When lead returns nil, Run resigns and is a candidate again, behind all others, a second
// after lead was called at the earliest. Outages do not end Run. It returns
//
//   - an error that lead returns during the term, as it is. A server's refusal of the resignation is
//     joined. An error that comes after the term was lost is logged as a warning, and Run goes on:
//     functions report the end of their context by all kinds of errors;
//   - an error that wraps ctx's, when ctx has ended, joined with one of lead that is not the end of its
//     context, and [framework.ErrClosed], when the client is closed;
//   - a permanent error, such as [ErrMixed] or [framework.ErrNoAuth].
//
// A resignation waits until the znode is gone, even after ctx has ended, but no longer than 250 ms.
// After that its deletion continues in the background. If lead has not returned ten seconds after its
// context has ended, Run logs a warning. If lead panics, Run resigns, and the panic
// reaches the caller. If lead is nil, Run returns an error. The term's Fence is its number.
func (e *Election) Run(
	ctx context.Context, lead func(ctx context.Context, term *lease.Lease) error,
) error {
	usercall.Require("ctx", ctx != nil)
	if err := args.Function("lead", lead != nil); err != nil {
		return recipe.Error(e.contest.Queue.Client, "run", e.contest.Path, err)
	}
	failed, err := e.contest.Repeat(ctx, again, e.warn, lead)
	switch {
	case failed != nil && ctx.Err() == nil:
		return failed
	case failed != nil:
		err = errors.Join(ctx.Err(), failed)
	}
	return recipe.CallError(ctx, e.contest.Queue.Client, "run", e.contest.Path, err)
}

// Leader returns who leads, as far as the client's server knows; false if there is no candidate. If ctx
// ends first, the error wraps ctx's.
func (e *Election) Leader(ctx context.Context) (lease.Participant, bool, error) {
	p, ok, err := contender.First(ctx, e.contest.Queue)
	return p, ok, recipe.CallError(ctx, e.contest.Queue.Client, "leader of", e.contest.Path, err)
}

// Participants returns the leader and the candidates behind it, in order; none if there is no
// candidate. The list is a snapshot of a moment that has passed.
func (e *Election) Participants(ctx context.Context) ([]lease.Participant, error) {
	found, err := contender.Participants(ctx, e.contest.Queue)
	return found, recipe.CallError(ctx, e.contest.Queue.Client, "participants of", e.contest.Path, err)
}

// Observe returns who leads, now and whenever that changes, the latest alone. It returns false while
// there is no candidate, and while it is not known: the client is not Connected, or the request fails.
// The sequence ends with ctx, with the client, or when the loop is left. A candidate that joins behind
// the leader costs an observer nothing, unless the ACL of the leader's znode denies it READ: then three
// requests.
func (e *Election) Observe(ctx context.Context) iter.Seq2[lease.Participant, bool] {
	return contender.ObserveFirst(ctx, e.contest.Queue, func(err error) { e.warn("leader can't be seen", err) })
}

// Path returns the election's path.
func (e *Election) Path() string { return e.contest.Path }

func (e *Election) warn(message string, err error) {
	e.contest.Queue.Client.Logger().Named("leader").Warn(message,
		zap.String(locktel.AttrPath, e.contest.Queue.Client.AbsolutePath(e.contest.Path)), zap.Error(err))
}
