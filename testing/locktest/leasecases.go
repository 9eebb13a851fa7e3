package locktest

import (
	"context"
	"errors"
	"strings"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
)

// leaseCases are those of lock.Lease, but for what concerns its loss.
func leaseCases() []contractCase {
	return []contractCase{
		{sentence: "Path is the lock's, Node a znode of the client's session", check: (*fixture).leaseHasANode},
		{sentence: "Fence grows even when the lock's directory was removed", check: (*fixture).fenceGrows},
		{sentence: "Context ends with its parent, and with the release, whose cause is ErrReleased", check: (*fixture).contextEnds},
		{sentence: "Lost is not closed by a release, and Err is ErrReleased from then on", check: (*fixture).releaseIsNoLoss},
		{sentence: "Release waits until the znode is gone", check: (*fixture).releaseDeletes},
		{sentence: "Release gives ErrReleased where the lease was released already", check: (*fixture).releasedOnce},
		{sentence: "If ctx ends first, Release's error wraps ctx's, and the deletion goes on", check: (*fixture).releaseWithADeadContext},
		{sentence: "Whoever has the lease may release it", check: (*fixture).anotherGoroutineReleases},
		{sentence: "A transaction with the Guard fails unless the znode still exists", check: (*fixture).guard},
	}
}

func (s *fixture) leaseHasANode() {
	c := s.env.Client(s)
	lease := s.mustLock(s.locker(c))
	if !strings.Contains(lease.Path(), s.path) { // a lock of several paths names them all
		s.Errorf("Path %s, want one that names %s", lease.Path(), s.path)
	}
	node := firstOf(lease).Node()
	st, ok, err := c.Exists(s.Context(), node)
	if err != nil || !ok || st.EphemeralOwner != c.Session().ID {
		s.Errorf("Node %s: owner %#x (%v, %v), want %#x", node, st.EphemeralOwner, ok, err, c.Session().ID)
	}
	s.mustRelease(lease)
}

func (s *fixture) fenceGrows() {
	for range 3 {
		c := s.env.Client(s)
		s.mustRelease(s.mustLock(s.locker(c))) // the oracle looks at the fence
		if err := c.DeleteTree(s.Context(), s.path); err != nil && !errors.Is(err, framework.ErrNoNode) {
			s.Fatal(err)
		}
	}
}

func (s *fixture) contextEnds() {
	c := s.env.Client(s)
	lease := s.mustLock(s.locker(c))
	type key struct{}
	parent, cancelParent := context.WithCancel(context.WithValue(s.Context(), key{}, "value"))
	child, cancelChild := lease.Context(parent)
	defer cancelChild()
	held, cancel := lease.Context(s.Context())
	defer cancel()
	if child.Value(key{}) != "value" || child.Err() != nil || held.Err() != nil {
		s.Errorf("value %v, errors %v and %v; want the parent's value and no error", child.Value(key{}), child.Err(), held.Err())
	}
	cancelParent()
	if !errors.Is(child.Err(), context.Canceled) || held.Err() != nil || lease.Err() != nil {
		s.Errorf("errors %v, %v and %v once one parent was cancelled; want Canceled, and none", child.Err(), held.Err(), lease.Err())
	}
	s.mustRelease(lease)
	late, cancelLate := lease.Context(s.Context())
	defer cancelLate()
	for _, ctx := range []context.Context{held, late} {
		if cause := context.Cause(ctx); !errors.Is(cause, lock.ErrReleased) {
			s.Errorf("cause %v after the release, want ErrReleased", cause)
		}
	}
}

func (s *fixture) releaseIsNoLoss() {
	lease := s.mustLock(s.locker(s.env.Client(s)))
	if err := lease.Err(); err != nil {
		s.Errorf("Err of a lease that is held: %v", err)
	}
	s.mustRelease(lease)
	s.passMinute()
	if lost(lease) {
		s.Error("Lost was closed by a release")
	}
	if err := lease.Err(); !errors.Is(err, lock.ErrReleased) {
		s.Errorf("Err after the release: %v, want ErrReleased", err)
	}
}

func (s *fixture) releaseDeletes() {
	observer := s.env.Client(s)
	lease := s.mustLock(s.locker(s.env.Client(s)))
	s.mustRelease(lease)
	if left, err := leftovers(s.Context(), observer, s.path); err != nil || len(left) > 0 {
		s.Errorf("%v (%v) when Release had returned, want nothing", left, err)
	}
}

func (s *fixture) releasedOnce() {
	c := s.env.Client(s)
	lease := s.mustLock(s.locker(c))
	s.mustRelease(lease)
	vacate := s.occupy()
	for range 2 {
		if err := lease.Release(s.Context()); !errors.Is(err, lock.ErrReleased) {
			s.Errorf("further Release: %v, want ErrReleased", err)
		}
	}
	if _, err := s.tryLock(s.Context(), s.locker(c)); !errors.Is(err, lock.ErrHeld) {
		s.Errorf("TryLock: %v, want ErrHeld: the next holder was released", err)
	}
	vacate()
	s.mustBeQuiet(c)
}

func (s *fixture) releaseWithADeadContext() {
	c := s.env.Client(s)
	lease := s.mustLock(s.locker(c))
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if err := s.release(ctx, lease); !errors.Is(err, context.Canceled) {
		s.Errorf("Release with a ctx that has ended: %v, want context.Canceled", err)
	}
	if err := lease.Err(); !errors.Is(err, lock.ErrReleased) {
		s.Errorf("Err: %v, want ErrReleased: it is not held, whatever Release returned", err)
	}
	s.mustBeQuiet(c)
	s.mustBeFree()
}

func (s *fixture) anotherGoroutineReleases() {
	c := s.env.Client(s)
	lease := s.mustLock(s.locker(c))
	done := make(chan error, 1)
	s.spawn(func() { done <- s.release(s.Context(), lease) })
	if err := must.Receive(s, done, "the release"); err != nil {
		s.Errorf("Release on another goroutine: %v", err)
	}
	s.mustBeFree()
	s.mustBeQuiet(c)
}

func (s *fixture) guard() {
	c := s.env.Client(s)
	guarded := s.path + "-guarded"
	if _, err := c.Create(s.Context(), guarded, []byte("0"), framework.WithParents()); err != nil {
		s.Fatal(err)
	}
	write := func(lease *lock.Lease, data string) error {
		write := framework.OpSet(guarded, []byte(data), framework.AnyVersion)
		guards := lease.Guards()
		_, err := c.Txn(s.Context(), append(guards, write)...)
		culprit := new(framework.TxnError)
		if err != nil && (!errors.As(err, &culprit) || culprit.Index >= len(guards)) {
			s.Errorf("guarded write: %v, want the error of one of %d guards", err, len(guards))
		}
		return err
	}
	lease := s.mustLock(s.locker(c))
	if err := write(lease, "1"); err != nil {
		s.Errorf("guarded write of the holder: %v", err)
	}
	s.mustRelease(lease)
	next := s.mustLock(s.locker(c))
	if err := write(lease, "2"); !errors.Is(err, framework.ErrNoNode) && !errors.Is(err, framework.ErrBadVersion) {
		s.Errorf("guarded write with a released lease: %v, want ErrNoNode or ErrBadVersion", err)
	}
	s.mustRelease(next)
	if err := write(next, "3"); !errors.Is(err, framework.ErrNoNode) {
		s.Errorf("guarded write while nobody has the lock: %v, want ErrNoNode", err)
	}
	if data, _, err := c.Get(s.Context(), guarded); err != nil || string(data) != "1" {
		s.Errorf("data %q (%v), want 1", data, err)
	}
}
