package lock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// A goneContext ends without waking a waiter. A context does so if it ends at the very moment of
// the awaited event.
type goneContext struct {
	context.Context
	gone func() bool
}

func (c goneContext) Err() error {
	if c.gone() {
		return context.Canceled
	}
	return nil
}

// TestNoLeaseAfterItsContextEnded ends the context between the request that takes the lock and the
// return: there is no lease then, and no orphan.
func TestNoLeaseAfterItsContextEnded(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kinds, func(t *testing.T, env *zkenv.Env, k kind, path string) {
		observer := env.Client(t)
		for _, try := range []bool{false, true} {
			c, route := onRoute(t, env)
			l := k.lock(t, c, path)
			mustRelease(t, mustLock(t, l)) // an unfair mutex has its epoch from then on
			route.ResetRequests()
			gone := func() bool { return route.Count(fault.Create, fault.Multi) > 0 }
			attempt := l
			if try {
				attempt = tryLock{l}
			}
			lease, err := attempt.Lock(goneContext{context.WithoutCancel(t.Context()), gone})
			if lease != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("try %v: %v, %v, want no lease and context.Canceled", try, lease, err)
			}
			awaitEphemerals(t, observer, path, 0)
			route.ResetRequests()
			mustRelease(t, mustLock(t, l)) // the lock can be had by who is there
		}
	}, oneOfEach())
}
