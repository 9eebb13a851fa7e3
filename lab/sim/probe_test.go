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
func (w *world) probe() {
	for _, k := range w.workers {
		k.refresh()
		for _, h := range k.handles {
			if l := w.mustLock(k, h); l != nil {
				w.mustRelease(k, h, l)
			}
		}
	}
	first, second := w.workers[0], w.workers[len(w.workers)-1]
	if first.c != second.c && first.handles[0].name == second.handles[0].name && first.handles[0].kind() != "read" {
		w.succession(first, second)
	}
}

func (w *world) mustLock(k *worker, h *handle) *lock.Lease {
	l, err := w.ask(k, h)
	if errors.Is(err, framework.ErrUnknownOutcome) && !errors.Is(err, context.DeadlineExceeded) {
		l, err = w.ask(k, h) // its connection was one that a late handshake had made void
	}
	if err != nil {
		w.violated(liveness, "all is well, and %s can't have %s: %v", k.name, h.name, err)
		return nil
	}
	return l
}

func (w *world) ask(k *worker, h *handle) (*lock.Lease, error) {
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	return h.locker.Lock(k.owned(ctx))
}

func (w *world) mustRelease(k *worker, h *handle, l *lock.Lease) {
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	if err := l.Release(ctx); err != nil && !errors.Is(err, framework.ErrUnknownOutcome) {
		w.violated(liveness, "all is well, and %s can't release %s: %v", k.name, h.name, err)
	}
}

// succession ends the session of a holder that has a waiter.
func (w *world) succession(first, second *worker) {
	held := w.mustLock(first, first.handles[0])
	if held == nil {
		return
	}
	next := make(chan *lock.Lease, 1)
	go func() { next <- w.mustLock(second, second.handles[0]) }() // ends within a minute
	pass(time.Second)
	died := time.Now()
	w.tell("fault", "the holder dies", nodeOf(held))
	w.expire(first.f.Session().ID)
	l := <-next
	if took := time.Since(died); l != nil && took > w.plan.timeout {
		w.violated(liveness, "%s got %s %v after the holder's end", second.name, second.handles[0].name, took)
	}
	select {
	case <-held.Lost():
	case <-time.After(w.plan.timeout):
		w.violated(liveness, "%s does not know that it has lost %s", first.name, first.handles[0].name)
	}
	if l != nil {
		w.mustRelease(second, second.handles[0], l)
	}
	_ = held.Release(w.ctx) // it is lost
	pass(w.plan.timeout)
	w.count("successions", 1)
}
