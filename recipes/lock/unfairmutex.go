package lock

import (
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// An UnfairMutex is the plainest lock: one ephemeral znode, created or refused.
// A try costs one round trip, whether it succeeds or not. It is for few contenders
// that rather do something else than wait: a role that is asked for at
// intervals, a job that one host is to run. It is unfair: who waits is not
// queued, and whoever comes first after a release has the lock. Where many wait,
// or all must have their turn, use a [Mutex].
//
// It has no owner and is not reentrant: who has it and locks again waits, for
// ever if nobody else releases it. Curator has no such lock. The methods of an UnfairMutex
// may be called concurrently.
//
// A persistent znode beside the lock's, its epoch (see [framework.EpochOf]), counts the holders.
// By the epoch a release and [Lease.Guard] tell one holder's znode from the next one's. The first
// holder creates the epoch, and nobody deletes it. All contenders have to be allowed to read
// and to write the epoch. Its ACL is that of the first holder's znode: see [WithACL].
type UnfairMutex struct {
	client *framework.Client
	gates  *gates
	path   string // as its user gave it
	full   string // in the ensemble
	cfg    config
	tel    telemetry.Lock
}

// NewUnfairMutex returns the unfair mutex at path; nothing is sent yet. The path
// is that of the znode itself, which is nobody else's to create: missing
// parents are created, as containers, when they are needed. Two UnfairMutex
// values on one path are the same lock. There is no queue, so [WithQueuePosition]
// is refused, and so is [WithRevocation]. Where arguments are faulty NewUnfairMutex
// returns all faults.
func NewUnfairMutex(c *framework.Client, path string, opts ...Option) (*UnfairMutex, error) {
	refuse := optionFunc(func(cfg *config) {
		if cfg.revoked != nil {
			cfg.faults = append(cfg.faults, errors.New("revocation: an unfair mutex can't be revoked"))
		}
		if cfg.position != nil {
			cfg.faults = append(cfg.faults, errors.New("queue position: an unfair mutex has no queue"))
		}
	})
	cfg, err := newConfig("unfair mutex", c, path, append(slices.Clip(opts), refuse))
	if err != nil {
		return nil, err
	}
	full := c.AbsolutePath(path)
	return &UnfairMutex{
		client: c,
		gates:  gatesOf(c),
		path:   path,
		full:   full,
		cfg:    cfg,
		tel:    telemetry.Of(c, telemetry.TypeUnfair, cfg.name, full),
	}, nil
}

// Lock waits until the lock is free and the caller was the first to take it, and
// returns the lease. ctx bounds the wait only; if it ends first, the error wraps
// ctx's error, and no znode of the attempt stands, or its deletion goes on in
// the background. Should the session end while Lock waits, it goes on in the
// next one. Other errors are those of the client, when its policy is exhausted:
// see package framework.
//
// At a release those who wait ask for the lock one after another, at random within
// two milliseconds, and later the more often they were not the first: within up
// to 32 ms. Calls of one client wait for each other without any request, and take
// part as one.
func (m *UnfairMutex) Lock(ctx context.Context) (*Lease, error) {
	l, err := m.acquire(ctx, false)
	return l, callError(ctx, "lock", m.path, err)
}

// TryLock returns a lease, or [ErrHeld] where somebody else has the lock, or
// another call of the same client has it or is about to ask for it. It takes
// one round trip, or none in the latter case, and more only where the parent or
// the epoch is missing or a reply is lost. ctx bounds its requests; what holds if it ends
// first is as with [UnfairMutex.Lock].
func (m *UnfairMutex) TryLock(ctx context.Context) (*Lease, error) {
	l, err := m.acquire(ctx, true)
	return l, callError(ctx, "try lock", m.path, err)
}

// Participants returns the lock's holder, or nothing: who waits leaves no trace.
// A znode at the path that belongs to no session is returned as well: it keeps
// everybody from the lock until somebody deletes it.
func (m *UnfairMutex) Participants(ctx context.Context) ([]Participant, error) {
	data, st, err := m.client.Get(cause.Inside(ctx), m.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, callError(ctx, "participants of", m.path, err)
	}
	p := contender.At(m.path, data, st)
	p.Holder = true
	return []Participant{p}, nil
}

// Path returns the lock's path.
func (m *UnfairMutex) Path() string { return m.path }

func (m *UnfairMutex) acquire(ctx context.Context, try bool) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	ctx, seen := m.tel.Begin(cause.Inside(ctx))
	return contender.Observed(ctx, seen, func() (*Lease, error) { return m.contend(ctx, seen, try) })
}

func (m *UnfairMutex) contend(ctx context.Context, seen *telemetry.Acquire, try bool) (*Lease, error) {
	gate, waited, err := m.gates.take(ctx, m.full, try, seen)
	if err != nil {
		return nil, contender.WaitError(ctx, m.client, m.path, -1, nil, err)
	}
	a := &unfairAttempt{mutex: m, gate: gate, seen: seen, held: waited}
	granted := false
	defer func() {
		if !granted { // also if a function of the user's panicked
			a.giveUp()
		}
	}()
	a.data = m.attemptData(ctx, seen)
	err = a.run(ctx, try)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err() // both at once: a caller that has gone gets no lease
	}
	if err != nil && !try {
		err = contender.WaitError(ctx, m.client, m.path, -1, a.holder, err)
	}
	if err != nil {
		return nil, err
	}
	l := a.lease(ctx)
	granted = true
	return l, nil
}
