package execute

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
)

// A Holding is what the supervisor needs of a lease.
type Holding interface {
	Deadline() time.Time
	Lost() <-chan struct{}
	Err() error
}

// Reason returns the reason of a loss, as docs/observability.md has it.
func Reason(err error) string {
	switch {
	case errors.Is(err, framework.ErrSessionDeadline):
		return "lease_deadline"
	case errors.Is(err, framework.ErrSessionExpired):
		return "session_expired"
	case errors.Is(err, lease.ErrNodeDeleted):
		return "node_deleted"
	case errors.Is(err, lease.ErrSuspended):
		return "suspended"
	case errors.Is(err, framework.ErrClosed):
		return "client_closed"
	}
	return "other"
}

// AwaitAmple waits until the lease lasts long enough for CMD to start: for the next proof, if the
// last one is too old. It returns the lease's error if the lease ends first, and ctx's if ctx does.
func AwaitAmple(ctx context.Context, h Holding, b Budget) error {
	for {
		if err := h.Err(); err != nil {
			return err
		}
		if b.Ample(time.Now(), h.Deadline()) {
			return nil
		}
		select {
		case <-time.After(b.Timeout / 64):
		case <-h.Lost():
		case <-ctx.Done():
			return fmt.Errorf("wait for a proof of the session: %w", context.Cause(ctx))
		}
	}
}
