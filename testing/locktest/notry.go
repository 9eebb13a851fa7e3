package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// A patientLocker is a lock without TryLock: its TryLock is a Lock that waits a while.
type patientLocker struct{ lock.Locker }

// patience is how long a patientLocker waits for a lock that may be free, on a machine as slow as it
// may be.
const patience = 3 * time.Second

// patient returns what makes the locks of newLocker with a TryLock that can be called.
func patient(newLocker NewLocker) NewLocker {
	return func(t testing.TB, c *framework.Client, path string) lock.Locker {
		t.Helper()
		return patientLocker{newLocker(t, c, path)}
	}
}

// TryLock returns ErrHeld if the lock can't be had within patience.
func (p patientLocker) TryLock(ctx context.Context) (*lock.Lease, error) {
	brief, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lease, err := p.Lock(brief)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, lock.ErrHeld
	}
	return lease, err
}
