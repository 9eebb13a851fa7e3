package sim_test

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// probe is the validator of "liveness" once all is well: all clients can have every lock, and when
// a holder dies its successor has the lock within a session timeout.
func (env *environment) probe() {
	for _, k := range env.workers {
		k.refresh()
		for _, h := range k.handles {
			if l := env.mustLock(k, h); l != nil {
				env.mustRelease(k, h, l)
			}
		}
	}
	first, second := env.workers[0], env.workers[len(env.workers)-1]
	if first.c != second.c && first.handles[0].name == second.handles[0].name && first.handles[0].kind() != "read" {
		env.succession(first, second)
	}
}

func (env *environment) mustLock(k *worker, h *handle) *lock.Lease {
	l, err := env.ask(k, h)
	if errors.Is(err, framework.ErrUnknownOutcome) && !errors.Is(err, context.DeadlineExceeded) {
		l, err = env.ask(k, h) // its connection was one that a late handshake had made void
	}
	if err != nil {
		env.violated(liveness, "all is well, and %s can't have %s: %v", k.name, h.name, err)
		return nil
	}
	return l
}

func (env *environment) ask(k *worker, h *handle) (*lock.Lease, error) {
	ctx, cancel := context.WithTimeout(env.ctx, time.Minute)
	defer cancel()
	return h.locker.Lock(k.owned(ctx))
}

func (env *environment) mustRelease(k *worker, h *handle, l *lock.Lease) {
	ctx, cancel := context.WithTimeout(env.ctx, time.Minute)
	defer cancel()
	if err := l.Release(ctx); err != nil && !errors.Is(err, framework.ErrUnknownOutcome) {
		env.violated(liveness, "all is well, and %s can't release %s: %v", k.name, h.name, err)
	}
}

// succession ends the session of a holder that has a waiter.
func (env *environment) succession(first, second *worker) {
	held := env.mustLock(first, first.handles[0])
	if held == nil {
		return
	}
	next := make(chan *lock.Lease, 1)
	go func() { next <- env.mustLock(second, second.handles[0]) }() // ends within a minute
	pass(time.Second)
	died := time.Now()
	env.report("fault", "the holder dies", nodeOf(held))
	env.expire(first.f.Session().ID)
	l := <-next
	if took := time.Since(died); l != nil && took > env.plan.timeout {
		env.violated(liveness, "%s got %s %v after the holder's end", second.name, second.handles[0].name, took)
	}
	select {
	case <-held.Lost():
	case <-time.After(env.plan.timeout):
		env.violated(liveness, "%s does not know that it has lost %s", first.name, first.handles[0].name)
	}
	if l != nil {
		env.mustRelease(second, second.handles[0], l)
	}
	_ = held.Release(env.ctx) // it is lost
	pass(env.plan.timeout)
	env.count("successions", 1)
}
