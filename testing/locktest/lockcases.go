package locktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
)

// lockCases are those of lock.Locker.
func lockCases() []contractCase {
	return []contractCase{
		{sentence: "Lock waits until the lock is the caller's", check: (*fixture).lockWaits},
		{sentence: "Two owners that exclude each other never hold it at once, and fences grow", check: (*fixture).excludes},
		{sentence: "ctx bounds the wait only, never the lease", check: (*fixture).ctxBoundsTheWait},
		{sentence: "If ctx ends first, Lock's error wraps ctx's", check: (*fixture).ctxEndsTheWait},
		{sentence: "Nothing of an attempt that failed stays in the way of others", check: (*fixture).attemptsLeaveNothing},
		{sentence: "ctx bounds every call, with no server reachable too", check: (*fixture).callsAreBounded},
		{sentence: "A call that has ended leaves no goroutine", check: (*fixture).callsLeaveNoGoroutine},
	}
}

// tryCases are those of TryLock alone.
func tryCases() []contractCase {
	return []contractCase{
		{sentence: "TryLock gets a lock that is free", check: (*fixture).tryLockGets},
		{sentence: "TryLock never waits for another holder, and returns ErrHeld", check: (*fixture).tryLockIsRefused},
		{
			sentence: "TryLock returns ErrNotConnected within the connect timeout if the servers do not answer",
			check:    (*fixture).tryLockIsBounded,
			envs:     []zkenv.Option{zkenv.Only("it waits for the connect timeout dozens of times", zkenv.Embedded)},
		},
	}
}

func (s *fixture) lockWaits() {
	vacate := s.occupy()
	c := s.env.Client(s)
	done := s.lockLater(s.Context(), s.locker(c))
	s.mustWait(done)
	vacate()
	s.mustRelease(s.mustGet(done))
	s.mustBeQuiet(c)
}

// excludes has the goroutines of several clients contend. The first of each client waits for a lock
// that excludes the one under test, and the last one only tries. Each has a lock value of its own. Some
// say who they are, for the others the goroutine is the owner.
func (s *fixture) excludes() {
	const clients, goroutines, rounds = 3, 5, 4
	var (
		wg   sync.WaitGroup
		last *framework.Client
	)
	for i := range clients {
		c := s.env.Client(s)
		last = c
		for g := range goroutines {
			l, ctx := s.locker(c), s.Context()
			if g%2 == 0 {
				ctx = lock.ContextWithOwner(ctx, lock.NewOwner("contender"))
			}
			acquire, enter := l.Lock, s.granted
			switch {
			case s.cfg.shared && (i+g)%goroutines == 0:
				acquire, enter = s.rival(c).Lock, s.grantedAlone
			case !s.cfg.noTry && g == goroutines-1:
				acquire = l.TryLock
			}
			wg.Add(1)
			s.spawn(func() {
				defer wg.Done()
				for range rounds {
					s.visit(ctx, acquire, enter)
				}
			})
		}
	}
	_ = within(s, "all goroutines that contend", func() error { wg.Wait(); return nil })
	if got, most := s.oracle.Grants(), clients*goroutines*rounds; got < clients*(goroutines-1)*rounds || got > most {
		s.Errorf("%d grants, want at most %d, and all but those of tries", got, most)
	}
	s.mustBeQuiet(last)
}

// visit holds the lock for a moment, unless a try is refused.
func (s *fixture) visit(
	ctx context.Context, acquire func(context.Context) (*lock.Lease, error),
	enter func(*lock.Lease, error) (*lock.Lease, error),
) {
	lease, err := enter(acquire(ctx))
	<-time.After(time.Millisecond) // for others to come
	if errors.Is(err, lock.ErrHeld) {
		return
	}
	if err != nil {
		s.Errorf("Lock: %v", err)
		return
	}
	if err := s.release(ctx, lease); err != nil {
		s.Errorf("Release: %v", err)
	}
}

func (s *fixture) ctxBoundsTheWait() {
	c := s.env.Client(s)
	ctx, cancel := context.WithCancel(s.Context())
	lease, err := s.lock(ctx, s.locker(c))
	cancel()
	if err != nil {
		s.Fatal(err)
	}
	s.passMinute()
	if err := lease.Err(); err != nil {
		s.Errorf("lease, a while after its Lock's ctx ended: %v", err)
	}
	if l, err := s.rival(s.env.Client(s)).TryLock(s.Context()); !errors.Is(err, lock.ErrHeld) {
		s.Errorf("TryLock by another client: %v, %v; want ErrHeld", l, err)
	}
	s.mustRelease(lease)
}

// passMinute lets a minute pass in virtual time, and little in real time.
func (s *fixture) passMinute() {
	if s.env.Kind().Virtual() {
		<-time.After(time.Minute)
	}
	s.env.Quiesce()
}

func (s *fixture) ctxEndsTheWait() {
	vacate := s.occupy()
	route := s.env.Route(s)
	c := route.Client(s)
	l := s.locker(c)

	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	route.ResetRequests()
	for name, call := range map[string]func(context.Context, lock.Locker) (*lock.Lease, error){"Lock": s.lock, "TryLock": s.tryLock} {
		err := within(s, name, func() error { _, err := call(ctx, l); return err })
		if !errors.Is(err, context.Canceled) {
			s.Errorf("%s with a ctx that has ended: %v, want context.Canceled", name, err)
		}
	}
	for _, rq := range route.Requests() {
		if strings.HasPrefix(rq.Path, s.path) {
			s.Errorf("%v of %s for a ctx that has ended, want no request", rq.Op, rq.Path)
		}
	}

	ctx, cancel = context.WithCancel(s.Context())
	done := s.lockLater(ctx, l)
	s.mustWait(done)
	cancel()
	if got := must.Receive(s, done, "the end of the wait"); !errors.Is(got.err, context.Canceled) {
		s.Errorf("Lock that was cancelled: %v, want context.Canceled", got.err)
	}

	ctx, cancel = context.WithTimeout(s.Context(), brief)
	defer cancel()
	if got := must.Receive(s, s.lockLater(ctx, l), "the end of the wait"); !errors.Is(got.err, context.DeadlineExceeded) {
		s.Errorf("Lock that timed out: %v, want context.DeadlineExceeded", got.err)
	}
	vacate()
	s.mustBeQuiet(c)
}

// attemptsLeaveNothing has attempts of all kinds fail while another client waits behind them.
func (s *fixture) attemptsLeaveNothing() {
	vacate := s.occupy()
	c := s.env.Client(s)
	var failing []<-chan outcome
	ctx, withdraw := context.WithCancel(s.Context())
	for range 3 {
		owned := lock.ContextWithOwner(ctx, lock.NewOwner("one that gives up"))
		failing = append(failing, s.lockLater(owned, s.locker(c)))
	}
	s.env.Quiesce()
	behind := s.lockLater(s.Context(), s.locker(s.env.Client(s)))
	s.mustWait(behind)
	withdraw()
	for _, done := range failing {
		if got := must.Receive(s, done, "the end of the wait"); !errors.Is(got.err, context.Canceled) {
			s.Errorf("Lock that was cancelled: %v, want context.Canceled", got.err)
		}
	}
	if _, err := s.tryLock(s.Context(), s.locker(c)); !errors.Is(err, lock.ErrHeld) {
		s.Errorf("TryLock: %v, want ErrHeld", err)
	}
	vacate()
	s.mustRelease(s.mustGet(behind))
	s.mustBeFree()
	s.mustBeQuiet(c)
}

func (s *fixture) tryLockGets() {
	c := s.env.Client(s)
	for range 3 {
		lease, err := s.tryLock(s.Context(), s.locker(c))
		if err != nil {
			s.Fatalf("TryLock of a free lock: %v", err)
		}
		s.mustRelease(lease)
	}
	s.mustBeQuiet(c)
}

func (s *fixture) tryLockIsRefused() {
	holder, route := s.env.Client(s), s.env.Route(s)
	vacate := s.occupyBy(holder)
	c := route.Client(s)
	start := time.Now()
	route.ResetRequests()
	for range 3 {
		if _, err := s.tryLock(s.Context(), s.locker(c)); !errors.Is(err, lock.ErrHeld) {
			s.Errorf("TryLock of a held lock: %v, want ErrHeld", err)
		}
	}
	if n := route.Count(fault.Create, fault.Delete); n > 0 {
		s.Errorf("%d writes for what a look can refuse, want 0", n)
	}
	another := lock.ContextWithOwner(s.Context(), lock.NewOwner("another"))
	if _, err := s.tryLock(another, s.locker(holder)); !errors.Is(err, lock.ErrHeld) {
		s.Errorf("TryLock of a lock that another owner of the client has: %v, want ErrHeld", err)
	}
	if took := time.Since(start); took > prompt || s.env.Kind().Virtual() && took > brief {
		s.Errorf("three TryLocks of a held lock took %v", took)
	}
	vacate()
	s.catchUp(c)
	lease, err := s.tryLock(s.Context(), s.locker(c))
	if err != nil {
		s.Fatalf("TryLock once the holder has gone: %v", err)
	}
	s.mustRelease(lease)
	s.mustBeQuiet(c)
}

// tryLockIsBounded begins an outage before a try, and at each request of one, for a lock that was used and for one
// that was not. The context never ends.
func (s *fixture) tryLockIsBounded() {
	outages := map[string]func(*zkenv.Route){
		"servers are gone":   func(r *zkenv.Route) { r.Refuse(); r.Cut() },
		"servers are silent": func(r *zkenv.Route) { r.Blackhole(zkproxy.Both) },
	}
	for n := range 12 {
		outages[fmt.Sprintf("no reply from request %d on", n)] = func(r *zkenv.Route) {
			r.Rules().Add(fault.Rule{Action: fault.HoldRequest, Skip: n, Times: fault.Forever})
		}
	}
	for name, begin := range outages {
		for _, used := range []bool{false, true} {
			s.elsewhere().tryIn(name, begin, used)
		}
	}
}

func (s *fixture) tryIn(outage string, begin func(*zkenv.Route), used bool) {
	route := s.env.Route(s)
	c := route.Client(s, framework.WithSessionTimeout(generous))
	l := s.locker(c)
	if used {
		s.mustRelease(s.mustLock(l))
	}
	begin(route)
	var lease *lock.Lease
	for range 3 { // the client knows of the outage, or does not know of it
		began := time.Now()
		got, err := s.tryLock(context.Background(), l)
		if took := time.Since(began); took > c.ConnectTimeout() {
			s.Errorf("%s: TryLock returned after %v, want %v at the most", outage, took, c.ConnectTimeout())
		}
		if lease = got; err == nil {
			break // it takes fewer requests
		}
		if !errors.Is(err, framework.ErrNotConnected) || errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("%s: TryLock: %v, want ErrNotConnected, and no context blamed that has not ended", outage, err)
		}
	}
	route.Rules().Clear()
	route.Heal()
	if lease != nil {
		s.mustRelease(lease)
	}
	s.passMinute()
	s.mustBeFree()
	s.mustBeQuiet(c)
}

func (s *fixture) callsAreBounded() {
	route := s.env.Route(s)
	c := route.Client(s)
	free := s.elsewhere()
	lease := s.mustLock(s.locker(c))
	route.Blackhole(zkproxy.Both)
	calls := map[string]func(context.Context) error{
		"Lock":    func(ctx context.Context) error { _, err := free.lock(ctx, free.locker(c)); return err },
		"TryLock": func(ctx context.Context) error { _, err := free.tryLock(ctx, free.locker(c)); return err },
		"Release": func(ctx context.Context) error { return s.release(ctx, lease) },
	}
	for name, call := range calls {
		ctx, cancel := context.WithTimeout(s.Context(), brief)
		start := time.Now()
		err := within(s, name, func() error { return call(ctx) })
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("%s: %v, want context.DeadlineExceeded", name, err)
		}
		if took := time.Since(start); took > prompt || s.env.Kind().Virtual() && took > 2*brief {
			s.Errorf("%s took %v with a ctx of %v", name, took, brief)
		}
	}
	route.Heal()
	other := s.env.Client(s)
	s.mustBeQuiet(other)
	free.mustBeQuiet(other)
}

// callsLeaveNoGoroutine counts where that can be done: in a bubble.
func (s *fixture) callsLeaveNoGoroutine() {
	vacate := s.occupy()
	c := s.env.Client(s)
	s.env.Quiesce()
	before := goroutines()
	for range 3 {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.lockLater(ctx, s.locker(c))
		s.mustWait(done)
		cancel()
		must.Receive(s, done, "the end of the wait")
		if _, err := s.tryLock(s.Context(), s.locker(c)); !errors.Is(err, lock.ErrHeld) {
			s.Errorf("TryLock: %v, want ErrHeld", err)
		}
	}
	vacate()
	dead, cancel := context.WithCancel(s.Context())
	cancel()
	lease := s.mustLock(s.locker(c))
	if err := s.release(dead, lease); !errors.Is(err, context.Canceled) {
		s.Errorf("Release: %v, want context.Canceled", err)
	}
	s.mustRelease(s.mustLock(s.locker(c)))
	s.mustBeQuiet(c)
	s.passMinute()
	if after := goroutines(); s.env.Kind().Virtual() && after > before {
		s.Errorf("%d goroutines after calls that have ended, %d before", after, before)
	}
}
