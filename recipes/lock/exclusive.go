package lock

import (
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/lease"
)

// An Exclusive is the plainest lock: one ephemeral znode, created or refused.
// A try costs one round trip, whether it succeeds or not. It is for few contenders
// that rather do something else than wait: a role that is asked for at
// intervals, a job that one host is to run. It is unfair: who waits is not
// queued, and whoever comes first after a release has the lock. Where many wait,
// or all must have their turn, use a [Mutex].
//
// It has no owner and is not reentrant: who has it and locks again waits, for
// ever if nobody else releases it. Curator has no such lock. The methods of an Exclusive
// may be called concurrently.
//
// A persistent znode beside the lock's, its epoch (see [framework.EpochOf]), counts the holders.
// By the epoch a release and [Lease.Guard] tell one holder's znode from the next one's. The first
// holder creates the epoch, and nobody deletes it. All contenders have to be allowed to read
// and to write the epoch. Its ACL is that of the first holder's znode: see [WithACL].
type Exclusive struct {
	ownerless
	client *framework.Client
	seats  *seats
}

// NewExclusive returns the exclusive lock at path; nothing is sent yet. The path
// is that of the znode itself, which is nobody else's to create: missing
// parents are created, as containers, when they are needed. Two Exclusive
// values on one path are the same lock. There is no queue, so [WithQueuePosition]
// is refused, and so is [WithRevocation]. Where arguments are faulty NewExclusive
// returns all faults.
func NewExclusive(c *framework.Client, path string, opts ...Option) (*Exclusive, error) {
	refuse := optionFunc(func(cfg *config) {
		if cfg.revoked != nil {
			cfg.faults = append(cfg.faults, errors.New("revocation: an exclusive lock can't be revoked"))
		}
		if cfg.position != nil {
			cfg.faults = append(cfg.faults, errors.New("queue position: an exclusive lock has no queue"))
		}
	})
	cfg, err := newConfig("exclusive", c, path, append(slices.Clip(opts), refuse))
	if err != nil {
		return nil, err
	}
	return &Exclusive{
		ownerless: ownerless{
			registry: registryOf(c), path: path, full: c.AbsolutePath(path), cfg: cfg,
			tel: telemetry.Of(c, telemetry.TypeExclusive, cfg.name, c.AbsolutePath(path)),
		},
		client: c,
		seats:  seatsOf(c),
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
func (e *Exclusive) Lock(ctx context.Context) (*Lease, error) {
	l, err := e.acquire(ctx, false)
	return l, opError("lock", e.path, err)
}

// TryLock returns a lease, or [ErrHeld] where somebody else has the lock, or
// another call of the same client has it or is about to ask for it. It takes
// one round trip, or none in the latter case, and more only where the parent or
// the epoch is missing or a reply is lost. ctx bounds its requests; what holds if it ends
// first is as with [Exclusive.Lock].
func (e *Exclusive) TryLock(ctx context.Context) (*Lease, error) {
	l, err := e.acquire(ctx, true)
	return l, opError("try lock", e.path, err)
}

// Participants returns the lock's holder, or nothing: who waits leaves no trace.
// A znode at the path that belongs to no session is returned as well: it keeps
// everybody from the lock until somebody deletes it.
func (e *Exclusive) Participants(ctx context.Context) ([]Participant, error) {
	data, st, err := e.client.Get(ctx, e.path)
	if ctxerr.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, opError("participants of", e.path, err)
	}
	p := Participant{Path: e.path, Session: st.EphemeralOwner, Holder: true, Data: data}
	if m, ok := lease.DecodeMetadata(data); ok {
		p.Metadata, p.Data = m, m.Data
	}
	return []Participant{p}, nil
}

// Path returns the lock's path.
func (e *Exclusive) Path() string { return e.path }

func (e *Exclusive) acquire(ctx context.Context, try bool) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, ctxerr.Of(ctx)
	}
	ctx, seen := e.tel.Begin(ctx)
	return observed(ctx, seen, func() (*Lease, error) { return e.contend(ctx, seen, try) })
}

func (e *Exclusive) contend(ctx context.Context, seen *telemetry.Acquire, try bool) (*Lease, error) {
	seat, waited, err := e.seats.take(ctx, e.full, try, seen)
	if err != nil {
		return nil, err
	}
	a := &exclusiveAttempt{lock: e, seat: seat, seen: seen, taken: waited}
	granted := false
	defer func() {
		if !granted { // also if a function of the user's panicked
			a.giveUp()
		}
	}()
	a.data = e.attemptData(ctx, seen)
	grant, err := a.run(ctx, try)
	if err == nil && ctx.Err() != nil {
		// Both at once: no lease is returned to somebody who has gone.
		err = ctxerr.Of(ctx)
	}
	if err != nil {
		return nil, err
	}
	lease := e.lease(ctx, seen, grant, func(h *hold) { h.means, h.guard = a.means(), a.guard })
	granted = true
	return lease, nil
}
