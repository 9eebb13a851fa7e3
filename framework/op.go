package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/otelzk"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/retry"
)

// zapError is how this package logs an error.
func zapError(err error) zap.Field { return zap.Error(err) }

// A repeatability says whether a request with an unknown outcome may be repeated.
type repeatability int

const (
	once       repeatability = iota + 1 // a second request could have a second effect
	repeatable                          // a second request has no further effect
)

// A request is one operation with all its attempts.
type request struct {
	op, path string // for observers
	session  int64  // the session that it is bound to, 0 for any
	repeat   repeatability

	single    bool    // one attempt only: the caller repeats it
	batch     int     // operations of a transaction
	reads     bool    // a read-only server suffices
	tolerates []error // errors that are no failure for the caller
}

// failed reports whether err is a failure for the caller.
func (rq *request) failed(err error) bool {
	return err != nil && !slices.ContainsFunc(rq.tolerates, func(t error) bool { return errors.Is(err, t) })
}

// do makes attempts by the client's policy until an attempt succeeds, fails for good, or ctx ends.
// It is the only layer that retries. A request that was never sent is always tried again. A request
// with an unknown outcome is tried again only if that is safe.
func do[T any](ctx context.Context, c *core, rq request, attempt func(context.Context, *session.Session) (T, error)) (T, error) {
	usercall.Require("ctx", ctx != nil)
	o := c.telemetry.Observe(ctx, otelzk.Operation{Name: rq.op, Path: rq.path, Batch: rq.batch})
	if o == nil {
		return try(ctx, c, rq, nil, attempt)
	}
	err := ErrUnknownOutcome // until there is a reply: a function of the user may panic
	defer func() { o.End(err, rq.failed(err)) }()
	v, err := try(o.Context(), c, rq, o, func(ctx context.Context, s *session.Session) (T, error) {
		o.Session = s
		return attempt(ctx, s)
	})
	return v, err
}

// try is do without telemetry.
func try[T any](ctx context.Context, c *core, rq request, o *otelzk.Observation, attempt func(context.Context, *session.Session) (T, error)) (T, error) {
	bound, repeat, reads := rq.session, rq.repeat, rq.reads // all that an attempt keeps of rq
	policy := c.cfg.retry
	if rq.single {
		policy = retry.Never()
	}
	unknown := false // an earlier attempt had an unknown outcome
	v, err := retry.Value(ctx, policy, func(ctx context.Context) (T, error) {
		var zero T
		s, err := c.sessionFor(ctx, bound, reads)
		if err != nil {
			return zero, classify(repeat, err, false)
		}
		if c.cfg.oneSession {
			bound = s.ID()
		}
		breaks := c.breaks.Load()
		v, err := attempt(ctx, s)
		if err == nil {
			return v, nil
		}
		unknown = unknown || errors.Is(err, ErrUnknownOutcome)
		return v, classify(repeat, err, c.breaks.Load() != breaks)
	}, c.retryOptions(rq, o)...)
	if unknown && !reads && unanswered(err) {
		err = fmt.Errorf("%w; an earlier attempt: %w", err, ErrUnknownOutcome)
	}
	return v, cause.Without(err)
}

// unanswered reports whether no server has replied to the attempt that failed with err. If an earlier
// attempt had an unknown outcome, the call then has it too.
func unanswered(err error) bool {
	return !errors.Is(err, ErrUnknownOutcome) && slices.ContainsFunc([]error{
		ErrNotConnected, ErrReadOnly, ErrAuthFailed, ErrSessionEnded, ErrClosed, context.Canceled, context.DeadlineExceeded,
	}, func(reason error) bool { return errors.Is(err, reason) })
}

// classify marks the errors after which no attempt follows, and those of attempts during which the
// connection broke. If ctx has ended, the retry loop checks that first.
func classify(repeat repeatability, err error, broke bool) error {
	switch {
	case !Retryable(err):
		return retry.Permanent(err)
	case errors.Is(err, ErrUnknownOutcome) && repeat == once:
		return retry.Permanent(err)
	case broke:
		return brokenError{err}
	}
	return err
}

// sessionFor returns a connected session: the session with the id, or any for 0. It may be a
// read-only session if reads is true.
func (c *core) sessionFor(ctx context.Context, id int64, reads bool) (*session.Session, error) {
	if id == 0 {
		return c.awaitServer(ctx, reads)
	}
	s := c.current()
	if s == nil || s.ID() != id {
		return nil, fmt.Errorf("%w: %#x is no longer the client's session", ErrSessionEnded, id)
	}
	return s, c.awaitLink(ctx, s)
}
