package leader

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// An Election is a path whose candidates lead one after another, in the order in which they came.
// Every call of Campaign or Run is a candidate of its own. Its methods may be called concurrently.
type Election struct { // immutable
	queue   *waitqueue.Queue
	path    string
	contest contender.Contest
}

// New returns the election at path; nothing is sent yet. The path is the directory of the candidates'
// znodes: it and its parents are created, as containers, when they are needed. Where arguments are
// faulty New returns all faults.
func New(c *framework.Client, path string, opts ...Option) (*Election, error) {
	cfg, err := newConfig(c, path, opts)
	if err != nil {
		return nil, recipe.Error("new election", path, err)
	}
	kind := cfg.format.kind()
	queue := &waitqueue.Queue{
		Client: c, Dir: path, Kinds: []string{kind}, ACL: cfg.acl,
		Predecessor: waitqueue.ExclusivePredecessor,
	}
	return &Election{queue, path, contender.Contest{
		Queue: queue, Path: path, Data: cfg.data, OpError: recipe.Error,
		Telemetry:  telemetry.Of(c, telemetry.TypeLeader, cfg.name, c.AbsolutePath(path)),
		LossPolicy: cfg.lossPolicy, Revoked: cfg.revoked,
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
	l, err := e.contest.Acquire(cause.Inside(ctx))
	return l, recipe.CallError(ctx, "campaign", e.path, err)
}

// Path returns the election's path.
func (e *Election) Path() string { return e.path }
