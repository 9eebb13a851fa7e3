package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
)

// sessionAtStake is the session timeout of clients that lose their session by its time.
const sessionAtStake = 4 * time.Second

// lossCases are those that concern the end of a session, a client or a znode.
func lossCases() []contractCase {
	return []contractCase{
		{sentence: "Lost is closed before another owner can be granted the lock", check: (*fixture).lossComesFirst},
		{sentence: "A lease is lost with its session, Err tells the cause, and the lock can be had again", check: (*fixture).sessionEndsHeld},
		{sentence: "Context ends when the lease is lost, with the LostError as its cause", check: (*fixture).contextEndsWithTheLoss},
		{sentence: "A lost lease's Release gives its LostError", check: (*fixture).releaseOfALost},
		{sentence: "A session that ends while Lock waits is no reason to be granted, or to wait forever", check: (*fixture).sessionEndsWaiting},
		{sentence: "A session that ends while Release waits has released the lock", check: (*fixture).sessionEndsReleasing},
		{sentence: "A lease is lost when its znode is deleted by another client", check: (*fixture).znodeDeleted},
		{sentence: "A lease is lost, and a wait ended, when the client is closed", check: (*fixture).clientClosed},
	}
}

// lossComesFirst cuts the holder off without a word. In virtual time that is done at moments
// spread over a session, so that heartbeats and ticks are met at all phases.
func (s *fixture) lossComesFirst() {
	phases := []time.Duration{100 * time.Millisecond, 300 * time.Millisecond}
	if s.env.Kind().Virtual() {
		for at := time.Duration(0); at < sessionAtStake; at += 73 * time.Millisecond {
			phases = append(phases, at)
		}
	}
	for i, phase := range phases {
		direction := zkproxy.Both
		if i%2 == 1 {
			direction = zkproxy.ToServer // replies would still come
		}
		s.elsewhere().cutOffAfter(phase, direction)
	}
}

func (s *fixture) cutOffAfter(phase time.Duration, direction zkproxy.Direction) {
	route := s.env.Route(s)
	holder, next := route.Client(s, framework.WithSessionTimeout(sessionAtStake)), s.env.Client(s)
	lease := s.mustLock(s.locker(holder))
	done := make(chan outcome, 1)
	s.spawn(func() {
		lease, err := s.grantedAlone(s.rival(next).Lock(s.Context())) // the oracle looks at Lost
		done <- outcome{lease, err}
	})
	s.mustWait(done)
	<-time.After(phase)
	route.Blackhole(direction)
	must.Receive(s, lease.Lost(), "the loss of the lease")
	s.mustRelease(s.mustGet(done))
	route.Heal()
	if err := errors.Join(holder.Close(), next.Close()); err != nil {
		s.Error(err)
	}
}

// mustBeLost waits for the loss of a lease and holds what it tells against cause.
func (s *fixture) mustBeLost(lease *lock.Lease, cause error) {
	s.Helper()
	must.Receive(s, lease.Lost(), "the loss of the lease")
	var lostErr *lock.LostError
	err := lease.Err()
	if !errors.As(err, &lostErr) || !errors.Is(err, lock.ErrLost) || !errors.Is(err, cause) || lostErr.Path != lease.Path() {
		s.Errorf("Err of a lost lease: %v, want a LostError of %s that wraps %v", err, lease.Path(), cause)
	}
}

func (s *fixture) sessionEndsHeld() {
	route := s.env.Route(s)
	c := route.Client(s)
	l := s.locker(c)
	lease := s.mustLock(l)
	route.Expire(s)
	s.mustBeLost(lease, framework.ErrSessionEnded)
	again := s.mustLock(l)
	if err := s.release(s.Context(), lease); !errors.Is(err, lock.ErrLost) {
		s.Errorf("Release of the lost lease: %v, want ErrLost", err)
	}
	if _, err := c.Txn(s.Context(), lease.Guards()...); !errors.Is(err, framework.ErrNoNode) && !errors.Is(err, framework.ErrBadVersion) {
		s.Errorf("transaction with the Guards of a lost lease: %v, want ErrNoNode or ErrBadVersion", err)
	}
	if err := again.Err(); err != nil {
		s.Errorf("Err of the next lease: %v, want nil: it has nothing to do with the lost one", err)
	}
	s.mustRelease(again)
	s.mustBeQuiet(c)
}

func (s *fixture) contextEndsWithTheLoss() {
	route := s.env.Route(s)
	lease := s.mustLock(s.locker(route.Client(s)))
	held, cancel := lease.Context(s.Context())
	defer cancel()
	route.Expire(s)
	must.Receive(s, held.Done(), "the end of the context")
	late, cancelLate := lease.Context(s.Context())
	defer cancelLate()
	for _, ctx := range []context.Context{held, late} {
		var lostErr *lock.LostError
		if cause := context.Cause(ctx); !errors.As(cause, &lostErr) {
			s.Errorf("cause %v, want a LostError", cause)
		}
	}
}

func (s *fixture) releaseOfALost() {
	route := s.env.Route(s)
	c := route.Client(s)
	lease := s.mustLock(s.locker(c))
	route.Expire(s)
	s.mustBeLost(lease, framework.ErrSessionEnded)
	var lostErr *lock.LostError
	if err := s.release(s.Context(), lease); !errors.As(err, &lostErr) {
		s.Errorf("Release: %v, want a LostError", err)
	}
	if err := lease.Release(s.Context()); !errors.Is(err, lock.ErrReleased) {
		s.Errorf("second Release: %v, want ErrReleased", err)
	}
	s.mustBeFree()
	s.mustBeQuiet(c)
}

func (s *fixture) sessionEndsWaiting() {
	vacate := s.occupy()
	route := s.env.Route(s)
	c := route.Client(s)
	done := s.lockLater(s.Context(), s.locker(c))
	s.mustWait(done)
	route.Expire(s)
	s.env.Quiesce()
	vacate()
	got := must.Receive(s, done, "the end of the wait")
	if got.err == nil {
		st, ok, err := c.Exists(s.Context(), firstOf(got.lease).Node())
		if err != nil || !ok || st.EphemeralOwner != c.Session().ID {
			s.Errorf("granted %s of session %#x (%v, %v), want one of %#x", firstOf(got.lease).Node(), st.EphemeralOwner, ok, err, c.Session().ID)
		}
		s.mustRelease(got.lease)
	}
	s.mustBeFree()
	s.mustBeQuiet(c)
}

func (s *fixture) sessionEndsReleasing() {
	route := s.env.Route(s)
	c := route.Client(s)
	lease := s.mustLock(s.locker(c))
	var held []*fault.Handle
	for _, op := range []fault.Op{fault.Delete, fault.Multi} { // a heartbeat is a Multi of another path
		rule := route.Rules().Add(fault.Rule{Op: op, Path: s.path + "**", Action: fault.HoldRequest})
		defer rule.Release()
		held = append(held, rule)
	}
	done := make(chan error, 1)
	s.spawn(func() { done <- s.release(s.Context(), lease) })
	s.env.Quiesce()
	if held[0].Hits()+held[1].Hits() == 0 {
		s.Error("no request of the release was held")
	}
	route.Expire(s)
	if err := must.Receive(s, done, "the release"); err != nil && !errors.Is(err, lock.ErrLost) {
		s.Errorf("Release: %v, want nil or ErrLost", err)
	}
	if err := lease.Err(); !errors.Is(err, lock.ErrReleased) {
		s.Errorf("Err: %v, want ErrReleased", err)
	}
	route.Rules().Clear()
	s.mustBeFree()
	s.mustBeQuiet(c)
}

// znodeDeleted deletes a holder's znode, after a grant at once and after a wait. The holder notices that before its
// release, or by the release.
func (s *fixture) znodeDeleted() {
	operator, c := s.env.Client(s), s.env.Client(s)
	l := s.locker(c)
	for i := range 4 {
		waits, notices := i%2 == 1, i < 2
		vacate := func() {}
		if waits {
			vacate = s.occupyBy(operator)
		}
		done := s.lockLater(s.Context(), l)
		s.env.Quiesce()
		vacate()
		lease := s.mustGet(done)
		s.oracle.Leave(lease) // what follows excludes no client
		if err := operator.Delete(s.Context(), firstOf(lease).Node()); err != nil {
			s.Fatal(err)
		}
		if notices {
			s.mustBeLost(lease, lock.ErrNodeDeleted)
		}
		if err := lease.Release(s.Context()); !errors.Is(err, lock.ErrNodeDeleted) || !errors.Is(err, lock.ErrLost) {
			s.Errorf("Release (waited %v, noticed %v): %v, want ErrLost and ErrNodeDeleted", waits, notices, err)
		}
	}
	s.mustBeFree()
	s.mustBeQuiet(c)
}

func (s *fixture) clientClosed() {
	holding, waiting := s.env.Client(s), s.env.Client(s)
	lease := s.mustLock(s.locker(holding))
	l := s.cfg.rival(s, waiting, s.path)
	done := make(chan error, 1)
	s.spawn(func() {
		_, err := l.Lock(s.Context())
		done <- err
	})
	s.env.Quiesce()
	if err := waiting.Close(); err != nil {
		s.Error(err)
	}
	if err := must.Receive(s, done, "the end of the wait"); !errors.Is(err, framework.ErrClosed) {
		s.Errorf("Lock when its client was closed: %v, want ErrClosed", err)
	}
	if _, err := l.Lock(s.Context()); !errors.Is(err, framework.ErrClosed) {
		s.Errorf("Lock on a closed client: %v, want ErrClosed", err)
	}
	if _, err := l.TryLock(s.Context()); !errors.Is(err, framework.ErrClosed) {
		s.Errorf("TryLock on a closed client: %v, want ErrClosed", err)
	}
	if err := holding.Close(); err != nil {
		s.Error(err)
	}
	s.mustBeLost(lease, framework.ErrClosed)
	s.mustBeFree()
	s.mustBeQuiet(s.env.Client(s))
}
