package framework

import (
	"time"

	"github.com/docent-go/docent/framework/internal/otelzk"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/usercall"

	"github.com/docent-go/docent/retry"
)

// Retryable reports whether err is of a temporary condition: the request was never sent
// ([ErrNotConnected]) or its outcome is unknown ([ErrUnknownOutcome]). In the second case it may
// have had its effect, so repeating it is safe only if a second effect does no harm. These errors
// are not retryable: an error of a context, the end of a session or a client, and [ErrTooLarge]. An
// error that the operation's own first attempt may have caused is not retryable either.
func Retryable(err error) bool { return zkerr.Retryable(err) }

// A Retry is a failed attempt of an operation after which another attempt follows.
type Retry struct {
	Op      string        // as in [OpError]
	Path    string        // as the ensemble knows it, "" if there is none
	Attempt int           // which attempt failed, from 1
	Err     error         // why
	Wait    time.Duration // until the next
}

// retryOptions end an operation's pauses as soon as there is a connection again, and report its
// retries.
func (c *core) retryOptions(rq request, o *otelzk.Observation) []retry.DoOption {
	if c.cfg.onRetry == nil && o == nil {
		return c.hurry
	}
	return []retry.DoOption{c.hurry[0], retry.OnRetry(func(f retry.Failure) {
		if o != nil {
			o.Retrying(f)
		}
		if c.cfg.onRetry != nil {
			usercall.Guard(c.log, "WithRetryObserver", func() {
				c.cfg.onRetry(Retry{Op: rq.op, Path: rq.path, Attempt: f.Attempt, Err: f.Err, Wait: f.Wait})
			})
		}
	})}
}

// nextConnection is closed at the next transition to Connected, and to Closed. A retried operation
// failed for lack of a connection, so once there is one, a longer pause has no use. There may be one
// already: the wire client reports some requests only after it has connected again.
func (c *core) nextConnection(f retry.Failure) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := f.Err.(brokenError); ok && c.state == Connected { //nolint:errorlint // this very error, as try returned it
		already := make(chan struct{})
		close(already)
		return already
	}
	return c.up
}

// A brokenError is the failure of an attempt during which the connection broke.
type brokenError struct{ error }

// Unwrap returns the failure.
func (e brokenError) Unwrap() error { return e.error }
