package lock

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/internal/boundary"
)

// WithRevocation makes the lock accept requests to release, which [Revoke] and Curator's Revoker
// make. fn is called once per request, with the oldest lease of the lock's owner. It may release
// the lease, stop the work under it, or do nothing. An owner with several leases releases the lock
// with the last of them. A waiter that is asked is notified when it is granted the lock.
//
// The calls for one holder are sequential, on a separate goroutine. One call may stand for several
// requests that arrive while fn runs or in quick succession. fn may call anything. A release does
// not wait for it, so it may still run when the lease has ended. [framework.Client.Close] waits for
// it as for a state listener. If one owner uses several values of a lock, the fn of the value that
// acquired the lock is called.
//
// The lock is revocable in every hold. That costs one read each time that the lock is acquired
// without a wait.
func WithRevocation(fn func(l *Lease)) Option {
	return optionFunc(func(cfg *config) {
		if fn == nil {
			cfg.faults = append(cfg.faults, errors.New("revocation: the function must not be nil"))
		}
		cfg.revoked = fn
	})
}

// Revoke asks the contender whose znode is at path to release the lock, or not to keep it once it
// is granted. [Participant.Path] and [Lease.Node] have the path. A contender of a lock with
// [WithRevocation], or Curator's makeRevocable, is notified, and may ignore the request. Revoke
// returns once the request is made. If the znode is gone already, it returns nil, because the
// contender has left the queue.
//
// The request replaces the znode's data, and so its metadata. If the znode is not ephemeral, such
// as the directory of a lock's contenders, Revoke leaves it alone and names it in the error. If ctx
// ends first, the error wraps ctx's, and the request may have been made. Other errors are
// [framework.ErrNoAuth], and those of every operation of the client. Revoke may be called
// concurrently.
func Revoke(ctx context.Context, c *framework.Client, path string) error {
	if err := errors.Join(boundary.Client(c), framework.ValidatePath(path)); err != nil {
		return opError("revoke", path, err)
	}
	err := request(cause.Inside(ctx), c, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return callError(ctx, "revoke", path, err)
}

func request(ctx context.Context, c *framework.Client, path string) error {
	st, ok, err := c.Exists(ctx, path)
	if err != nil {
		return err
	}
	if ok && st.EphemeralOwner == 0 {
		return errors.New("it is no contender's znode, since it is not ephemeral")
	}
	_, err = c.Set(ctx, path, []byte(queuenode.RevokeMark), framework.AnyVersion, framework.Idempotent()) // even if a lagging server showed no data
	return err
}
