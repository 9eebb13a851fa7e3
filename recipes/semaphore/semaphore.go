package semaphore

import (
	"context"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/permits"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/lease"
)

// MaxAtOnce is the maximum number of permits of one lease: one transaction creates their znodes.
const MaxAtOnce = 1000

// A Semaphore has a number of permits for processes on any number of hosts. It is fair, and knows no
// owners: a call of a goroutine that holds permits waits for further ones. Its methods may be called
// concurrently.
type Semaphore struct { // immutable
	pool permits.Pool
	cfg  config
}

// New returns the semaphore at path with the permits, and sends nothing yet. The number of permits
// is at least 1 and at most 2147483647, and is nowhere in the tree: all processes have to give the
// same number, or use [WithPermitsAt]. The directories of the znodes are below the path. All three
// and missing parents are created as containers when they are needed. If arguments are faulty, New
// returns all faults.
func New(c *framework.Client, path string, number int, opts ...Option) (*Semaphore, error) {
	cfg, err := newConfig(c, path, number, opts)
	if err != nil {
		return nil, recipe.Error(c, "new semaphore", path, err)
	}
	return &Semaphore{cfg: cfg, pool: permits.Pool{
		Client: c, Path: path, Permits: permits.Number{Fixed: number, At: cfg.permitsAt}, ACL: cfg.ACL,
		LossPolicy: cfg.LossPolicy, Position: cfg.QueuePosition, Recipe: recipe,
		LongWait:  contender.LogLongWait(c, "permits", path, contender.AskQueue),
		Telemetry: telemetry.Of(c, telemetry.TypeSemaphore, cfg.Name, c.AbsolutePath(path)),
	}}, nil
}

// Acquire waits for n permits, together and in turn, and returns one lease of them. n is at least 1
// and at most [MaxAtOnce]. If the semaphore has fewer permits, Acquire returns [ErrTooMany] at once;
// with [WithPermitsAt] it waits for more. ctx bounds the wait only. If ctx ends first, the error is
// a [*lease.WaitError] that wraps ctx's error. The attempt's znodes are then gone, or their deletion
// continues in the background. If the session ends while Acquire waits, it queues again in the next
// session. Other errors are [ErrCorrupt] and the client's.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*lease.Lease, error) {
	if err := s.check(n); err != nil {
		return nil, recipe.Error(s.pool.Client, "acquire", s.pool.Path, err)
	}
	l, err := s.pool.Acquire(ctx, n, false, s.dataFor(ctx))
	return l, recipe.CallError(ctx, s.pool.Client, "acquire", s.pool.Path, err)
}

// TryAcquire makes one attempt and returns one lease of n permits, or [lease.ErrHeld] if fewer are
// free or another contender waits. A contender that was granted its permits a moment ago may still
// count as one that waits. It never waits for another contender; ctx bounds its requests. If no server
// answers within the client's connect timeout, the error wraps [framework.ErrNotConnected]. n and the
// other errors are those of [Semaphore.Acquire].
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*lease.Lease, error) {
	if err := s.check(n); err != nil {
		return nil, recipe.Error(s.pool.Client, "try acquire", s.pool.Path, err)
	}
	l, err := s.pool.Acquire(ctx, n, true, s.dataFor(ctx))
	return l, recipe.CallError(ctx, s.pool.Client, "try acquire", s.pool.Path, err)
}

// check returns the fault of a call for n permits.
func (s *Semaphore) check(n int) error {
	switch {
	case n < 1 || n > MaxAtOnce:
		return fmt.Errorf("permits to acquire %d: must be between 1 and %d", n, MaxAtOnce)
	case n > s.pool.Permits.Fixed && s.pool.Permits.At == "":
		return fmt.Errorf("%d permits of a semaphore of %d: %w", n, s.pool.Permits.Fixed, ErrTooMany)
	}
	return nil
}

// Participants returns a participant for each permit in use, of kind "lease-", and then the
// contenders of the queue, of kind "lock-", each in order. The first contender of the queue may have
// participants of both kinds: it is the next holder, and Holder is false for all of them. So may a
// holder, for a moment after the grant. The list is a snapshot of a moment that has passed.
func (s *Semaphore) Participants(ctx context.Context) ([]lease.Participant, error) {
	found, err := s.pool.Participants(ctx)
	return found, recipe.CallError(ctx, s.pool.Client, "participants of", s.pool.Path, err)
}

// dataFor returns the data of the znodes of a call with ctx.
func (s *Semaphore) dataFor(ctx context.Context) func(*telemetry.Acquire) []byte {
	owner, party := contender.OwnerOf(ctx, s.pool.Client)
	return func(acq *telemetry.Acquire) []byte {
		return contender.NodeData(&s.cfg.Options, func() lease.Metadata { return contender.Metadata(owner, party, s.cfg.Data, acq) })
	}
}

// Path returns the semaphore's path.
func (s *Semaphore) Path() string { return s.pool.Path }
