package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// A Locker is a lock that is held by a lease. All locks of this package are Lockers, or have sides
// that are. Its methods may be called concurrently.
type Locker interface {
	// Lock waits until the caller holds the lock and returns the lease. ctx bounds the wait only,
	// never the lease. If ctx ends first, the error wraps ctx's, and nothing of the attempt blocks
	// another contender.
	Lock(ctx context.Context) (*Lease, error)

	// TryLock makes one attempt and never waits for another holder: it returns ErrHeld if there is
	// one. ctx bounds its requests. So does the client's connect timeout (5 s by default, see
	// [framework.WithConnectTimeout]): if no server answers within it, the error wraps
	// [framework.ErrNotConnected].
	TryLock(ctx context.Context) (*Lease, error)
}

// A DoOption configures a call of [Do].
type DoOption interface{ apply(*doConfig) }

type doOptionFunc func(*doConfig)

func (f doOptionFunc) apply(cfg *doConfig) { f(cfg) }

type doConfig struct {
	wait  time.Duration // 0 for no bound but ctx
	try   bool
	fault error
}

// WaitAtMost bounds the wait for the lock, and not fn. d must be positive. If d ends the wait, the
// error wraps [context.DeadlineExceeded]. It excludes [WithoutWaiting].
func WaitAtMost(d time.Duration) DoOption {
	return doOptionFunc(func(cfg *doConfig) {
		if d <= 0 {
			cfg.fault = fmt.Errorf("wait at most %v: must be positive", d)
		}
		cfg.wait = d
	})
}

// WithoutWaiting makes one attempt, as TryLock does: Do returns [ErrHeld] if another owner holds the
// lock, and an error that wraps [framework.ErrNotConnected] if no server answers in time.
func WithoutWaiting() DoOption {
	return doOptionFunc(func(cfg *doConfig) { cfg.try = true })
}

// Do calls fn while it holds l, and releases l, even if fn panics. fn's context is derived from
// ctx. When the lock is lost it ends, with a [*LostError] as its cause. fn must then stop, because
// another client may be about to hold the lock. The lease is for its [lease.Lease.Fence] and
// [lease.Lease.Guard]; if fn releases it, Do returns [ErrReleased].
//
// If Do can't acquire the lock before ctx ends, it does not call fn, and returns l.Lock's error.
// Otherwise Do returns what became of the work: fn's error itself, whatever happens to the lock after
// fn has returned. A LostError is joined if the lock was lost before fn returned, so that fn may have
// run together with the next holder. That includes a loss that the release finds, because another
// client has deleted the znode or ended the session. ErrReleased or a server's refusal of the release
// is joined, too.
//
// Do ends when fn has returned, which has to obey its context. It waits for the release, for 250 ms
// at most and also after the end of ctx. After that the client continues the release in the
// background, until the znode is gone or its session has ended. That is no error.
func Do(
	ctx context.Context, l Locker, fn func(ctx context.Context, lease *Lease) error, opts ...DoOption,
) error {
	usercall.Require("ctx", ctx != nil)
	lease, err := acquire(ctx, l, opts, lockerFault(l), args.Function("fn", fn != nil))
	if err != nil {
		return err
	}
	return contender.Work(ctx, lease, fn)
}

// lockerFault returns the fault of a lock that is nil, as that of a constructor that has failed is.
func lockerFault(l Locker) error {
	if isNil(l) {
		return errors.New("locker: must not be nil: was the error of its constructor checked?")
	}
	return nil
}

// acquire locks l as the options say. faults are those of the other arguments; nil ones are none.
func acquire(ctx context.Context, l Locker, opts []DoOption, faults ...error) (*Lease, error) {
	var cfg doConfig
	faults = append(faults, args.Apply(&cfg, opts, DoOption.apply)...)
	if cfg.try && cfg.wait != 0 {
		faults = append(faults, errors.New("options: WaitAtMost and WithoutWaiting exclude each other"))
	}
	if err := errors.Join(append(faults, cfg.fault)...); err != nil {
		return nil, fmt.Errorf("lock: do: %w", err)
	}
	if cfg.try {
		return l.TryLock(ctx)
	}
	if cfg.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.wait)
		defer cancel()
	}
	return l.Lock(ctx)
}

// Errors of locks. Errors of the client (see package framework) are returned with the operation and
// path in front.
var (
	// ErrHeld is returned by TryLock when another owner holds the lock.
	ErrHeld = lease.ErrHeld
	// ErrReleased is returned by methods of a lease that was released.
	ErrReleased = lease.ErrReleased
	// ErrLost is what every [*LostError] wraps.
	ErrLost = lease.ErrLost
	// ErrNodeDeleted is the cause of a loss if another client deleted the lease's znode.
	ErrNodeDeleted = lease.ErrNodeDeleted
	// ErrNotOwner is returned by Unlock when the caller has no lease of the lock.
	ErrNotOwner = errtype.New("caller does not own the lock", "not_owner")
	// ErrUpgrade is returned at once by Lock and TryLock of a read/write lock's write side if the
	// caller holds the read side: it would wait for itself.
	ErrUpgrade = errtype.New("caller has the read side, which can't be upgraded: release it first", "upgrade")
	// ErrMixed is returned by Lock and TryLock if another kind of lock is on the path, because both
	// would be granted: see docs/guarantees.md#kinds-of-locks-on-one-path.
	ErrMixed = waitqueue.ErrMixed
	// ErrCounterEnd is returned by Lock and TryLock of a read/write lock's read side to a caller
	// that holds the write side. The counter of the lock's directory has come to its end
	// (2147483647), so other znodes may have the read side's number. Release the write side first.
	ErrCounterEnd = waitqueue.ErrCounterEnd
)

// recipe begins the text of this package's errors.
const recipe args.Recipe = "lock"

// logLongWait returns the report of a wait for the lock at path; nil for none.
func logLongWait(c *framework.Client, path string) func(time.Duration, waitqueue.Blocker) {
	return contender.LogLongWait(c, "the lock", path, contender.AskQueue)
}
