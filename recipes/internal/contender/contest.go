package contender

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// A Contest is a queue of one kind, in which each call contends for a lease of its own. It is
// immutable.
type Contest struct {
	Queue      *waitqueue.Queue
	Path       string // of the recipe
	Telemetry  telemetry.Lock
	Data       func(owner, party string, acq *telemetry.Acquire) []byte // of a contender's znode
	LossPolicy lease.LossPolicy
	Revoked    func(*lease.Lease) // nil to ignore requests
	Recipe     args.Recipe        // begins the text of the errors of releases
}

// Acquire waits until the caller is the first of the queue, and returns the lease. If ctx ends first,
// the error is a [*lease.WaitError], and the znode is gone or is deleted in the background.
func (c *Contest) Acquire(ctx context.Context) (*lease.Lease, error) {
	usercall.Require("ctx", ctx != nil)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return Acquire(ctx, c.Telemetry, c.Queue.Client, false, func(ctx context.Context, acq *telemetry.Acquire) (*lease.Lease, error) {
		owner, party := OwnerOf(ctx, c.Queue.Client)
		a := c.Queue.NewAttempt(c.Queue.Kinds[0], func() []byte { return c.Data(owner, party, acq) })
		a.Telemetry = acq
		var grant *waitqueue.Grant
		return RunAttempt(ctx, func() (err error) {
			grant, err = a.Run(ctx)
			return err
		}, func() *lease.Lease {
			return c.lease(ctx, grant, acq)
		}, func(err error) error {
			defer a.Withdraw()
			return WaitErrorOf(ctx, c.Queue, c.Path, a, err)
		})
	})
}

func (c *Contest) lease(ctx context.Context, grant *waitqueue.Grant, acq *telemetry.Acquire) *lease.Lease {
	return NewLease(hold.Options{
		Client: grant.Client,
		Path:   c.Path,
		Grant:  &Grant{Grant: grant, Of: c.Path, Recipe: c.Recipe},
		Znode:  &grant.Znode,
		Hooks:  acq.Granted(ctx, grant.Fence(), grant.Session.Session()),
	}, c.LossPolicy, c.Revoked)
}

// Repeat acquires a lease and calls fn with it, as [Work] does, again and again until ctx ends. If fn
// returns while the lease is held, the next acquire begins the pause after that call at the earliest.
// If an acquire or a release fails for a condition that passes, it calls warn and goes on. It calls
// warn, too, if fn has not returned ten seconds after its context has ended, and if fn returns an error
// after the lease was lost: functions report the end of their context by all kinds of errors. If fn returns
// an error before, or after ctx has ended, that is not the end of its context, Repeat returns it as failed,
// as Work does. Otherwise it returns as err why it can't go on.
func (c *Contest) Repeat(
	ctx context.Context, pause time.Duration, warn func(message string, err error),
	fn func(ctx context.Context, l *lease.Lease) error,
) (failed, err error) {
	waits := Pauses.NewBackOff()
	for {
		var wait time.Duration
		l, err := c.Acquire(ctx)
		switch {
		case err == nil:
			waits.Reset()
			began := time.Now()
			if err := once(ctx, l, warn, fn); err != nil {
				return err, nil
			}
			wait = max(0, pause-time.Since(began))
			if errors.Is(l.Err(), lease.ErrLost) {
				wait = 0 // the next attempt waits for the next session
			}
		case ctx.Err() != nil || !passes(err):
			return nil, err
		default:
			warn("the acquire failed", err)
			wait = waits.NextBackOff()
		}
		select { // Acquire returns ctx's error
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// once calls fn and releases the lease. It returns an error if fn failed.
func once(
	ctx context.Context, l *lease.Lease, warn func(message string, err error),
	fn func(ctx context.Context, l *lease.Lease) error,
) error {
	var failed error
	var ended bool
	err := Work(ctx, l, func(ctx context.Context, l *lease.Lease) error {
		defer warnIfSlow(ctx, warn)()
		failed = unlessEnded(ctx, fn(ctx, l))
		ended = ctx.Err() != nil
		return failed
	})
	switch {
	case failed != nil && ended && ctx.Err() == nil:
		warn("the function returned an error after its lease was lost", failed)
	case failed != nil:
		return err
	case err != nil && !errors.Is(err, lease.ErrLost) && !errors.Is(err, lease.ErrReleased):
		warn("the release was refused: it is repeated in the background", err)
	}
	return nil
}

// slowFunction is after how long Repeat warns of a function that does not return.
const slowFunction = 10 * time.Second

// warnIfSlow calls warn if its result has not been called ten seconds after ctx has ended.
func warnIfSlow(ctx context.Context, warn func(message string, err error)) (returned func()) {
	end, done := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		select {
		case <-end:
		case <-time.After(slowFunction):
			warn("the lease is not released: the function has not returned since its context ended", context.Cause(ctx))
		}
	})
	return func() {
		if close(end); !stop() {
			<-done
		}
	}
}

// unlessEnded returns nil if err says no more than that ctx has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil || err == nil {
		return err
	}
	ended := every(err, func(one error) bool { return errors.Is(one, ctx.Err()) || errors.Is(one, context.Cause(ctx)) })
	if ended {
		return nil
	}
	return err
}

// passes reports whether an acquire failed with err for a condition that passes.
func passes(err error) bool {
	return framework.Retryable(err) || errors.Is(err, framework.ErrReadOnly) || errors.Is(err, framework.ErrAuthFailed)
}

// ReleaseWait is how long Work waits for the deletion of the znode after fn has returned. A quorum
// that works commits it within milliseconds, and within a tenth of a second across regions. After
// that the deletion continues in the background: the result of fn is known, and its caller should
// not wait for an outage to end.
const ReleaseWait = 250 * time.Millisecond

// Work calls fn with the lease and a context that ends with it, and releases the lease, even if fn
// panics. It returns fn's error. Other errors are joined to it: the end of the lease if that came
// before fn returned, and a server's refusal of the release. A loss that fn's error wraps is not
// joined again. A release that is only late is no error.
func Work(
	ctx context.Context, l *lease.Lease, fn func(ctx context.Context, l *lease.Lease) error,
) (err error) {
	held, cancel := l.Context(ctx)
	defer func() { // even when fn panics
		ended := l.Err() // now: what happens later does not change what fn has done
		cancel()
		if released := release(ctx, l); ended == nil {
			ended = released
		}
		if ended != nil && !errors.Is(err, ended) { // fn may return the loss itself
			err = errors.Join(err, ended)
		}
	}()
	return fn(held, l)
}

// Leaving returns the context of a clean-up after ctx has ended: it outlives ctx by the grace, but ends
// when the client has no connection, because then the clean-up goes on in the background.
func Leaving(ctx context.Context, c *framework.Client, grace time.Duration) (context.Context, context.CancelFunc) {
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	remove := c.OnState(func(change framework.StateChange) {
		if change.To != framework.Connected {
			cancel()
		}
	})
	return leaving, func() { remove(); cancel() }
}

// release releases the lease. It returns nil if that continues in the background.
func release(ctx context.Context, l *lease.Lease) error {
	releasing, done := context.WithTimeout(context.WithoutCancel(ctx), ReleaseWait)
	defer done()
	err := l.Release(releasing)
	if !isLate(err) {
		return err
	}
	return nil
}

// isLate reports whether a release failed with err only because no server has answered in time, or the
// client's own clock or connection ended the lease meanwhile: its caller has looked at the lease before. A
// refusal that is joined to such an error counts: that of another lock of a Multi, or that the deletion
// does not continue in the background.
func isLate(err error) bool {
	return every(err, func(one error) bool {
		if errors.Is(one, lease.ErrLost) {
			return errors.Is(one, framework.ErrSessionDeadline) || errors.Is(one, lease.ErrSuspended)
		}
		return framework.Retryable(one) || errors.Is(one, framework.ErrReadOnly) || errors.Is(one, context.DeadlineExceeded)
	})
}

// every reports whether is returns true for each of the errors that err joins, or for err if it joins
// none. An error that wraps several with a text of its own is one error.
func every(err error, is func(error) bool) bool {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		if !isJoin(inner) {
			continue
		}
		all := inner.(interface{ Unwrap() []error }).Unwrap()
		return !slices.ContainsFunc(all, func(one error) bool { return !every(one, is) })
	}
	return is(err)
}

// isJoin reports whether err has the type of what errors.Join returns.
func isJoin(err error) bool {
	return reflect.TypeOf(err) == reflect.TypeOf(errors.Join(context.Canceled))
}
