package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// An UnfairMutex is the simplest lock: one ephemeral znode, which a create makes or finds taken. A
// try costs one round trip, whether it succeeds or not. The lock is for few contenders that prefer
// not to wait: a role that is requested at intervals, a job for one host. It is unfair: waiters
// have no queue, and the first to come after a release acquires the lock. If many wait, or all must
// get their turn, use a [Mutex].
//
// It has no owner and is not reentrant: a holder that locks again waits, forever if no other
// goroutine releases. Curator has no such lock. Its methods may be called concurrently.
//
// A persistent znode next to the lock's, its epoch (see [framework.WithEpoch]), counts the holders.
// By the epoch, a release and [lease.Lease.Guard] distinguish one holder's znode from the next one's. The
// first holder creates the epoch, and docent never deletes it. All contenders must be allowed to
// read and write it. Its ACL is that of the first holder's znode: see recipes.WithACL.
type UnfairMutex struct {
	client *framework.Client
	gates  *gates
	path   string // as its user gave it
	full   string // in the ensemble
	cfg    config
	tel    telemetry.Lock

	longWait func(time.Duration, waitqueue.Blocker) // nil for none
	checked  atomic.Pointer[time.Time]              // when a try that was refused last read the znode
}

// NewUnfairMutex returns the unfair mutex at path and sends nothing yet. The path is that of the
// znode itself, which no other program may create. Missing parents are created as containers when
// they are needed. Two UnfairMutex values on one path are the same lock. There is no queue, so
// recipes.WithQueuePosition and recipes.WithRevocation are refused. If arguments are faulty, NewUnfairMutex
// returns all faults.
func NewUnfairMutex(c *framework.Client, path string, opts ...Option) (*UnfairMutex, error) {
	refuse := optionFunc(func(cfg *config) {
		if cfg.Revocation != nil {
			cfg.Fault("revocation: an unfair mutex can't be revoked")
		}
		if cfg.QueuePosition != nil {
			cfg.Fault("queue position: an unfair mutex has no queue")
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
		tel:    telemetry.Of(c, telemetry.TypeUnfair, cfg.Name, full),

		longWait: logLongWait(c, path),
	}, nil
}

// Lock waits until the lock is free and the caller was the first to take it, and returns the lease.
// ctx bounds the wait only. If ctx ends first, the error is a [*WaitError] that wraps ctx's error.
// The attempt's znode is then gone, or its deletion continues in the background. If the session
// ends while Lock waits, Lock continues in the next one. Other errors are the client's, when its
// retry policy is exhausted: see package framework. If the path is the directory of another kind of
// lock, Lock returns [ErrMixed].
//
// After a release, each waiter pauses for a random time within two milliseconds before it tries.
// The bound grows with each failure, up to 32 ms. Calls of one client wait for each other without
// any request, and contend as one.
func (m *UnfairMutex) Lock(ctx context.Context) (*Lease, error) {
	l, err := m.acquire(ctx, false)
	return l, recipe.CallError(ctx, m.client, "lock", m.path, err)
}

// TryLock returns a lease. It returns [ErrHeld] if another owner holds the lock, or if another call
// of the same client holds it or is about to try. It takes one round trip, or none in the latter
// case. A missing parent, a missing epoch or a lost reply costs more, and so does a look for [ErrMixed],
// which the first TryLock that finds a znode makes, and then at most one in a minute. ctx and the connect timeout
// bound its requests: see [Locker]. If ctx ends first, the same holds as for [UnfairMutex.Lock].
func (m *UnfairMutex) TryLock(ctx context.Context) (*Lease, error) {
	l, err := m.acquire(ctx, true)
	return l, recipe.CallError(ctx, m.client, "try lock", m.path, err)
}

// Participants returns the lock's holder, or none, because waiters have no znodes. It also returns
// a znode at the path that belongs to no session. Such a znode excludes every contender until it is
// deleted.
func (m *UnfairMutex) Participants(ctx context.Context) ([]Participant, error) {
	data, st, err := m.client.Get(ctx, m.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil && !args.Unreadable(err) {
		return nil, recipe.CallError(ctx, m.client, "participants of", m.path, err)
	}
	p := holderOf(m.path, &framework.Read{Data: data, Stat: st})
	p.Err = err
	return []Participant{*p}, nil
}

// Path returns the lock's path.
func (m *UnfairMutex) Path() string { return m.path }

func (m *UnfairMutex) acquire(ctx context.Context, try bool) (*Lease, error) {
	usercall.Require("ctx", ctx != nil)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return contender.Acquire(ctx, m.tel, m.client, try, func(ctx context.Context, acq *telemetry.Acquire) (*Lease, error) {
		return m.contend(ctx, acq, try)
	})
}

func (m *UnfairMutex) contend(ctx context.Context, acq *telemetry.Acquire, try bool) (*Lease, error) {
	a := &unfairAttempt{mutex: m, acq: acq, long: waitqueue.LongWait{Report: m.longWait}, grant: unfairGrant{gate: m.gates.reserve(m.full)}}
	return contender.RunAttempt(ctx, func() error {
		if err := a.enter(ctx, try); err != nil {
			return err
		}
		a.data = m.cfg.nodeData(m.client, callerOf(ctx), rand.Text(), acq) // nothing is recognised by it
		return a.run(ctx, try)
	}, func() *Lease {
		return a.lease(ctx)
	}, func(err error) error {
		defer a.withdraw()
		if try {
			return err
		}
		return contender.WaitError(ctx, m.client, m.path, -1, a.holder, err)
	})
}

// An unfairGrant is the grant of an unfair mutex: the znode at its path. Its epoch distinguishes it
// from the znodes of other holders.
type unfairGrant struct {
	hold.Znode
	epoch int32
	gate  *gate
}

// Guards returns a check of the epoch, because the znodes of all holders have one name.
func (g *unfairGrant) Guards() []framework.TxnOp {
	return []framework.TxnOp{framework.OpCheck(g.Path, framework.AnyVersion, framework.AtEpoch(g.epoch)).In(g.Client)}
}

// Release deletes the znode.
func (g *unfairGrant) Release(ctx context.Context) error {
	err := g.Client.Delete(ctx, g.Path, append(g.deletion(), framework.Guaranteed())...)
	return recipe.Error(g.Client, "release", g.Path, contender.ReleaseError(g.Client, g.Path, g.Session, err))
}

// Discard deletes the znode in the background.
func (g *unfairGrant) Discard() {
	g.Client.Discard(g.Path, g.deletion()...)
	g.Session.Release()
}

// deletion returns options that delete only the granted znode. The gate opens when the znode is gone.
// Until then the client must not create another one, because it could not distinguish the two after
// a lost reply.
func (g *unfairGrant) deletion() []framework.DeleteOption {
	return []framework.DeleteOption{
		framework.AtEpoch(g.epoch), framework.CreatedBy(g.Stat.Czxid), framework.WhenOver(func(bool) { g.gate.leave() }),
	}
}

// gates admit one attempt or lease of a client at a time to an unfair mutex's znode. Within a
// process, contenders queue at the gate without any request. If the outcome of a create is unknown,
// a znode of the client's session can only be that of the attempt at the gate.
type gates struct {
	mu     sync.Mutex
	byPath map[string]*gate // gates that are occupied or waited for
}

// A gate is the right to contend for one path.
type gate struct {
	gates    *gates
	path     string                            // in the ensemble
	turn     chan struct{}                     // capacity 1: full while the gate is occupied
	occupant atomic.Pointer[telemetry.Acquire] // the latest attempt at the gate, for telemetry
	holder   atomic.Pointer[framework.Read]    // the znode of whom that attempt waits for, or its own once it holds the lock; nil for none
	wanted   int                               // calls that occupy the gate or wait; guarded by gates.mu
}

// gatesOf returns the gates of c's client.
func gatesOf(c *framework.Client) *gates {
	return framework.Shared(c, func() *gates { return &gates{byPath: make(map[string]*gate)} })
}

// enter waits for the mutex's gate until ctx ends. With try it does not wait, and returns ErrHeld. If
// another attempt occupied the gate, the attempt has seen another holder.
func (a *unfairAttempt) enter(ctx context.Context, try bool) error {
	m, g := a.mutex, a.grant.gate
	select {
	case g.turn <- struct{}{}:
		a.entered = true
	default:
		if try {
			return ErrHeld
		}
		a.held = true
		a.acq.Waits(telemetry.NoQueue)
		a.acq.BehindAcquire(g.occupant.Load())
	}
	for !a.entered {
		select {
		case g.turn <- struct{}{}:
			a.entered = true
		case <-a.long.Due(): // the znode is this session's, or will be
			a.long.Notify(waitqueue.Blocker{Ahead: -1, Path: m.path, Stat: framework.Stat{EphemeralOwner: m.client.Session().ID}})
		case <-ctx.Done():
			if znode := g.holder.Load(); znode != nil {
				a.holder = holderOf(m.path, znode)
			}
			return ctx.Err()
		}
	}
	g.occupant.Store(a.acq)
	g.holder.Store(nil)
	return nil
}

// reserve returns the gate of the path for a call that has to leave it, or to forget it before it has entered.
func (s *gates) reserve(path string) *gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.byPath[path]
	if g == nil {
		g = &gate{gates: s, path: path, turn: make(chan struct{}, 1)}
		s.byPath[path] = g
	}
	g.wanted++
	return g
}

// leave opens the gate for the call that has waited longest.
func (g *gate) leave() {
	<-g.turn
	g.forget()
}

func (g *gate) forget() {
	g.gates.mu.Lock()
	defer g.gates.mu.Unlock()
	if g.wanted--; g.wanted == 0 {
		delete(g.gates.byPath, g.path)
	}
}
