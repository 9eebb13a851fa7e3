package lock

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// WithRevocation makes the lock heed requests to let go, which [Revoke] and
// Curator's Revoker make: fn is called, once per request, with a lease of the
// owner that has the lock, its oldest. It may release the lease, have the work under it
// stopped, or do nothing. An owner that has several leases gives the lock back
// with the last of them. One that is asked while it still waits is told when it
// has the lock.
//
// The calls for one holder follow one another, on a goroutine of their own; of requests
// that come while fn is at work, or shortly after one another, it may learn by one
// call. fn may call anything. A release does not wait for it, so it may still run when the
// lease has ended; [framework.Client.Close] does, as for a state listener. Where several
// values of a lock are used by one owner, the one that it got the lock by is
// the one whose fn is called.
//
// The lock stays revocable whoever has it next. It costs one read each time that the
// lock is got without waiting.
func WithRevocation(fn func(l *Lease)) Option {
	return optionFunc(func(cfg *config) {
		if fn == nil {
			cfg.faults = append(cfg.faults, errors.New("revocation: the function must not be nil"))
		}
		cfg.revoked = fn
	})
}

// Revoke asks the contender whose znode lies at path to let the lock go, or not
// to keep it when its turn comes. Where to find the path: [Participant.Path],
// [Lease.Node]. It is a request: a contender of a lock with [WithRevocation], or
// Curator's makeRevocable, hears of it, and any may ignore it. Revoke returns once
// the request is made. It returns nil also where there is no such znode any
// more: then what was asked for has happened.
//
// It replaces the znode's data, so that its metadata is gone. A znode that is not
// ephemeral, as the directory of a lock's contenders, is left alone and named in
// the error. If ctx ends first, the error wraps ctx's, and the request may have
// been made. Other errors: [framework.ErrNoAuth], and those of every operation of the
// client. It may be called concurrently.
func Revoke(ctx context.Context, c *framework.Client, path string) error {
	if err := errors.Join(contender.ClientFault(c), framework.ValidatePath(path)); err != nil {
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
	_, err = c.Set(ctx, path, []byte(hold.RevokeMark), framework.AnyVersion) // also where a lagging server saw none
	return err
}
