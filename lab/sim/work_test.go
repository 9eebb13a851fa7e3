package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// lock asks for a lock.
func (k *worker) lock(h *handle, of lock.Locker, op string, ask func(context.Context) (*lock.Lease, error)) {
	if !h.reentrant && slices.ContainsFunc(k.held, func(t *leaseRecord) bool { return t.handle.name == h.name }) {
		return // it would wait for itself
	}
	c := k.call(4 * k.env.plan.timeout)
	defer c.stop()
	k.do(op + " " + h.name)
	began := k.env.now()
	k.waits(h, of == h.downgrade || h.kind() == "read")
	defer k.waitEnded()
	l, err := ask(c.ctx)
	k.checkResult(op+" "+h.kind(), c, err)
	k.checkRefusal(h, began, err)
	if (l == nil) == (err == nil) {
		k.env.violated(nothingHidden, "%s of %s returned lease %v with error %v", op, h.name, l, err)
	}
	if err != nil {
		return
	}
	if of == h.downgrade {
		h = &handle{name: "read" + h.name[len("write"):], target: h.target, reentrant: true}
	}
	k.held = append(k.held, k.env.enter(k, k.f, h, l))
}

// doLocked is lock.Do with something to do.
func (k *worker) doLocked(h *handle) {
	if !h.reentrant && len(k.held) > 0 {
		return
	}
	c := k.call(4 * k.env.plan.timeout)
	defer c.stop()
	k.do("Do " + h.name)
	began := k.env.now()
	span := upTo(k.r, k.env.plan.timeout)
	panics := k.r.IntN(8) == 0
	called := false
	var returned time.Time // of fn
	var ended error        // of the lease, when fn returned
	k.waits(h, h.kind() == "read")
	defer k.waitEnded()
	defer func() {
		if v := recover(); v != nil && v != any(canary) {
			panic(v)
		}
	}()
	err := k.env.bug.do(c.ctx, spy{h.locker, func(l *lock.Lease) {
		k.held = append(k.held, k.env.enter(k, k.f, h, l))
		k.waitEnded()
	}}, func(ctx context.Context, _ *lock.Lease) error {
		called = true
		l := k.workWithLatest(ctx, span)
		returned, ended = time.Now(), l.Err()
		if panics {
			panic(canary)
		}
		return nil
	})
	if !called {
		k.checkResult("Do "+h.kind(), c, err)
		k.checkRefusal(h, began, err)
		return
	}
	k.env.inspect(err)
	k.checkAnswer(h, err, ended, time.Since(returned))
}

// workWithLatest does something with the latest lease, until ctx ends at the latest, and gives it up.
func (k *worker) workWithLatest(ctx context.Context, span time.Duration) *lock.Lease {
	t := k.held[len(k.held)-1]
	select {
	case <-ctx.Done():
	case <-time.After(span):
	}
	k.env.checkLoss(t)
	k.held = k.held[:len(k.held)-1]
	k.env.leave(t, k.name)
	t.cancel()
	return t.lease
}

// checkAnswer is the validator of "honest answers": Do says what happened to fn, which returned nil,
// and nothing that happened after it. ended is the lease's error when fn returned.
func (k *worker) checkAnswer(h *handle, err, ended error, late time.Duration) {
	env := k.env
	foundGone := slices.ContainsFunc([]error{lock.ErrNodeDeleted, framework.ErrSessionExpired},
		func(cause error) bool { return errors.Is(err, cause) })
	switch {
	case env.ctx.Err() != nil: // the end of the run
	case late > releaseWait+promptly:
		env.violated(boundedCalls, "Do of %s returned %v after fn", h.name, late)
	case errors.Is(ended, lock.ErrLost) && !errors.Is(err, lock.ErrLost):
		env.violated(honestAnswers, "Do of %s returned %v, although the lease was lost before fn returned", h.name, err)
	case ended == nil && errors.Is(err, lock.ErrLost) && !foundGone:
		env.violated(honestAnswers, "Do of %s returned %v, although the lease was valid when fn returned", h.name, err)
	}
}

// A spy tells of the lease that Do gets.
type spy struct {
	lock.Locker
	grants func(*lock.Lease)
}

func (s spy) Lock(ctx context.Context) (*lock.Lease, error) {
	l, err := s.Locker.Lock(ctx)
	if err == nil {
		s.grants(l)
	}
	return l, err
}

// release gives one lease up.
func (k *worker) release() {
	i := k.r.IntN(len(k.held))
	t := k.held[i]
	k.env.checkLoss(t)
	c := k.call(2 * k.env.plan.timeout)
	defer c.stop()
	byOwner := !k.plan.owned && k.r.IntN(2) == 0
	if byOwner { // then it is the latest that goes
		i, byOwner = k.latest(t)
		t = k.held[i]
		byOwner = byOwner && t.handle.unlock != nil
	}
	k.held = slices.Delete(k.held, i, i+1)
	k.env.leave(t, k.name)
	defer t.cancel()
	if byOwner {
		k.do("Unlock " + t.handle.name)
		k.checkResult("Unlock", c, t.handle.unlock(c.ctx))
		return
	}
	k.do("Release " + t.handle.name)
	k.checkResult("Release", c, t.lease.Release(c.ctx))
}

// latest returns the place of the lease that an Unlock of t's lock means, false if that is
// only a part of one: the leases of a multi's members count for their locks as well.
func (k *worker) latest(t *leaseRecord) (int, bool) {
	means := func(other *leaseRecord) bool {
		if t.handle.target == nil {
			return other.handle.name == t.handle.name
		}
		return slices.ContainsFunc(other.stakes, func(s *lockRecord) bool {
			return s.target == t.handle.target && s.shared == t.stakes[0].shared
		})
	}
	for i, other := range slices.Backward(k.held) {
		if means(other) {
			return i, (other.handle.target == nil) == (t.handle.target == nil)
		}
	}
	panic("the lease is not among those that are held")
}

// revoke requests the release of a lock.
func (k *worker) revoke(h *handle) {
	began := k.env.now()
	c := k.call(k.env.plan.timeout)
	defer c.stop()
	k.do("Participants " + h.name)
	found, err := h.list(c.ctx)
	k.checkResult("Participants "+h.kind(), c, err)
	k.checkRefusal(h, began, err)
	if len(found) == 0 || h.kind() == "exclusive" {
		return
	}
	c = k.call(k.env.plan.timeout)
	defer c.stop()
	k.do("Revoke " + h.name)
	f, path := k.f, found[k.r.IntN(len(found))].Path
	if path != unspelled(path) {
		f = f.Root()
	}
	k.checkResult("Revoke", c, lock.Revoke(c.ctx, f, path))
}

// write writes what is to be written by the holder alone, even where it is no longer.
func (k *worker) write() {
	i := slices.IndexFunc(k.held, func(t *leaseRecord) bool { return !t.stakes[0].shared && t.stakes[0].target.kind != "exclusive" })
	if i < 0 {
		return
	}
	t := k.held[i]
	s := t.stakes[0]
	ops := k.env.bug.guards(s.lease)
	c := k.call(k.env.plan.timeout)
	defer c.stop()
	k.do("write guarded by " + t.handle.name)
	data := fmt.Sprintf("%d %s", s.fence, canary)
	_, err := t.client.current().Txn(c.ctx, append(ops, framework.OpSet(s.target.registerPath(), []byte(data), framework.AnyVersion))...)
	if errors.Is(err, framework.ErrNoNode) {
		k.env.count("guarded writes refused", 1)
		return
	}
	k.checkResult("Txn", c, err)
}
