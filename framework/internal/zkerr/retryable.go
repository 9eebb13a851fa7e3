package zkerr

import (
	"context"
	"errors"
	"fmt"
)

// ErrEarlierAttempt is an unknown outcome that is not tried again.
var ErrEarlierAttempt = fmt.Errorf("%w: its reply was lost", ErrUnknownOutcome)

// Retryable reports whether err is of a temporary condition, as package framework documents it.
func Retryable(err error) bool {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.Is(err, ErrClosed), errors.Is(err, ErrSessionEnded), errors.Is(err, ErrEarlierAttempt), errors.Is(err, ErrTooLarge):
		return false
	}
	return errors.Is(err, ErrNotConnected) || errors.Is(err, ErrUnknownOutcome)
}
