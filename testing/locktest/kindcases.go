package locktest

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

func fairCase() contractCase {
	return contractCase{sentence: "Grants go in the order in which the lock was asked for", check: (*fixture).fair}
}

// fair queues several waiters in each of three sessions, one of them the holder's.
func (s *fixture) fair() {
	const waiters = 9
	holder := s.env.Client(s)
	vacate := s.occupyBy(holder)
	s.env.Quiesce() // what a granted attempt deletes in the background
	clients := []*framework.Client{s.env.Client(s), s.env.Client(s), holder}
	grants := make(chan int, waiters)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range waiters {
		c := clients[i%len(clients)]
		before := len(s.env.Ephemerals(s, c.Session().ID))
		l := s.locker(c)
		wg.Go(func() {
			lease, err := s.lock(s.Context(), l)
			grants <- i
			if err != nil {
				s.Errorf("Lock: %v", err)
				return
			}
			if err := s.release(s.Context(), lease); err != nil {
				s.Errorf("Release: %v", err)
			}
		})
		zktest.Eventually(s, generous, "the waiter's znode", func() bool { return len(s.env.Ephemerals(s, c.Session().ID)) > before })
	}
	vacate()
	for want := range waiters {
		if got := must.Receive(s, grants, "the next grant"); got != want {
			s.Errorf("grant %d went to waiter %d", want, got)
		}
	}
}

func reentrantCases() []contractCase {
	return []contractCase{
		{sentence: "An owner that has the lock gets it again, and gives it back with the last lease", check: (*fixture).reentrant},
		{sentence: "A lost lock is lost to all leases of its owner", check: (*fixture).reentrantLoss},
	}
}

// reentrant has an explicit owner, which may use any goroutine, and a goroutine that says
// nothing.
func (s *fixture) reentrant() {
	c := s.env.Client(s)
	owners := []context.Context{lock.ContextWithOwner(s.Context(), lock.NewOwner("owner")), s.Context()}
	for _, owned := range owners {
		first, err := s.lock(owned, s.locker(c))
		if err != nil {
			s.Fatal(err)
		}
		second, err := s.tryLock(owned, s.locker(c))
		if err != nil {
			s.Fatalf("TryLock by the owner: %v", err)
		}
		l := s.locker(c)
		third, err := s.lock(owned, l)
		if err != nil {
			s.Fatal(err)
		}
		if node := firstOf(second).Node(); firstOf(first).Node() != node || firstOf(third).Node() != node {
			s.Error("leases of one owner have different znodes")
		}
		for i, lease := range []*lock.Lease{second, first, third} {
			if _, err := s.rival(s.env.Client(s)).TryLock(s.Context()); !errors.Is(err, lock.ErrHeld) {
				s.Errorf("another client, after %d releases of 3: %v, want ErrHeld", i, err)
			}
			s.mustHave(owned, l, 3-i)
			s.mustRelease(lease)
		}
		s.mustHave(owned, l, 0)
		s.mustBeFree()
	}
	if err := lock.Do(s.Context(), s.locker(c), func(ctx context.Context, _ *lock.Lease) error {
		s.startGoroutineUnder(ctx, s.locker(c))
		return nil
	}); err != nil {
		s.Error(err)
	}
	s.unlocks(owners[0])
	s.mustBeQuiet(c)
}

// startGoroutineUnder fails the test if a goroutine that is started under the lock, with the context of its lease, is
// taken for its owner. That was a bug of the Go port of Curator: a context never carries a goroutine's ownership.
func (s *fixture) startGoroutineUnder(ctx context.Context, l lock.Locker) {
	_ = within(s, "a goroutine under the lock", func() error {
		if !s.cfg.shared {
			if _, err := l.TryLock(ctx); !errors.Is(err, lock.ErrHeld) {
				s.Errorf("TryLock by a goroutine that was started under the lock: %v, want ErrHeld", err)
			}
		}
		if c, ok := l.(counted); ok {
			s.mustHave(ctx, l, 0)
			if err := c.Unlock(ctx); !errors.Is(err, lock.ErrNotOwner) {
				s.Errorf("Unlock by a goroutine that was started under the lock: %v, want ErrNotOwner", err)
			}
		}
		return nil
	})
}

// A counted lock counts its owners' leases, and is unlocked by an owner rather than by a lease.
type counted interface {
	lock.Locker
	Held(ctx context.Context) int
	Unlock(ctx context.Context) error
}

// mustHave fails the test unless the owner of ctx has n leases of l, and another owner of the same name has none.
func (s *fixture) mustHave(ctx context.Context, l lock.Locker, n int) {
	s.Helper()
	c, ok := l.(counted)
	if !ok {
		return
	}
	stranger := lock.ContextWithOwner(s.Context(), lock.NewOwner("owner"))
	if got, others := c.Held(ctx), c.Held(stranger); got != n || others != 0 {
		s.Errorf("held %d times, and %d times by another owner; want %d and 0", got, others, n)
	}
	if err := c.Unlock(stranger); !errors.Is(err, lock.ErrNotOwner) {
		s.Errorf("Unlock by another owner: %v, want ErrNotOwner", err)
	}
}

// unlocks locks and unlocks twice for the owner of ctx, on other goroutines.
func (s *fixture) unlocks(ctx context.Context) {
	l, ok := s.locker(s.env.Client(s)).(counted)
	if !ok {
		return
	}
	for range 2 {
		if err := within(s, "Lock", func() error { _, err := l.Lock(ctx); return err }); err != nil {
			s.Fatal(err)
		}
	}
	for n := 1; n >= 0; n-- {
		if err := within(s, "Unlock", func() error { return l.Unlock(ctx) }); err != nil {
			s.Errorf("Unlock: %v", err)
		}
		s.mustHave(ctx, l, n)
	}
	if err := l.Unlock(ctx); !errors.Is(err, lock.ErrNotOwner) {
		s.Errorf("Unlock of what is not held: %v, want ErrNotOwner", err)
	}
	s.mustBeFree()
}

func (s *fixture) reentrantLoss() {
	route := s.env.Route(s)
	c := route.Client(s)
	l := s.locker(c)
	leases := []*lock.Lease{s.mustLock(l), s.mustLock(l)}
	route.Expire(s)
	for _, lease := range leases {
		s.mustBeLost(lease, lock.ErrLost)
		if err := s.release(s.Context(), lease); !errors.Is(err, lock.ErrLost) {
			s.Errorf("Release: %v, want ErrLost", err)
		}
		s.mustHave(s.Context(), l, 0)
	}
	s.mustBeFree()
	s.mustBeQuiet(c)
}

func sharedCase(permits int) contractCase {
	if permits > 0 {
		return contractCase{sentence: "All permits are held at once, and no more", check: (*fixture).sharing}
	}
	return contractCase{sentence: "Any number of owners hold it at once, and exclude who wants it alone", check: (*fixture).sharing}
}

func (s *fixture) sharing() {
	var leases []*lock.Lease
	for range cmp.Or(s.cfg.permits, 3) {
		leases = append(leases, s.mustLock(s.locker(s.env.Client(s))))
	}
	c := s.env.Client(s)
	s.env.Quiesce() // what a granted attempt deletes in the background would refuse TryLock, too
	if s.cfg.permits > 0 {
		if _, err := s.tryLock(s.Context(), s.locker(c)); !errors.Is(err, lock.ErrHeld) {
			s.Errorf("TryLock beside %d holders: %v, want ErrHeld", len(leases), err)
		}
	}
	alone := s.rival(c)
	for _, lease := range leases {
		s.env.Quiesce()
		if _, err := s.grantedAlone(alone.TryLock(s.Context())); !errors.Is(err, lock.ErrHeld) {
			s.Errorf("TryLock by who wants it alone: %v, want ErrHeld", err)
		}
		s.mustRelease(lease)
	}
	s.catchUp(c)
	lease, err := s.grantedAlone(alone.TryLock(s.Context()))
	if err != nil {
		s.Fatalf("TryLock by who wants it alone, when all have gone: %v", err)
	}
	s.mustRelease(lease)
}
