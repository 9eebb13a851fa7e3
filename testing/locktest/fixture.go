package locktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

const (
	// generous bounds what has to happen at some time, on a machine as slow as it may be.
	generous = 30 * time.Second
	// brief is how long a context lets wait what is to time out.
	brief = 200 * time.Millisecond
	// fixtureLimit ends what does not end by itself. In virtual time clients continue to ping
	// their server, so such a test would not hang but run forever.
	fixtureLimit = 30 * time.Minute
	// prompt bounds what a call takes once its context has ended, on such a machine.
	prompt = 5 * time.Second
)

// A fixture is a lock at a path that no other test uses, in one environment.
type fixture struct {
	*testing.T
	env       *zkenv.Env
	newLocker NewLocker
	cfg       config
	path      string
	oracle    *Oracle
	ctx       context.Context // of all calls; see fixtureLimit
	running   sync.WaitGroup  // see spawn
}

// Context returns what shadows the test's: it ends in time where a lock never returns.
func (s *fixture) Context() context.Context { return s.ctx }

func newFixture(t *testing.T, env *zkenv.Env, newLocker NewLocker, cfg config) *fixture {
	t.Helper()
	// The real servers outlive the test, and may have been here before.
	path := fmt.Sprintf("/locktest/%016x/lock", rand.Uint64())
	ctx, cancel := context.WithTimeout(t.Context(), fixtureLimit)
	s := &fixture{T: t, env: env, newLocker: newLocker, cfg: cfg, path: path, oracle: NewOracle(t), ctx: ctx}
	t.Cleanup(func() {
		cancel()
		ended := make(chan struct{})
		go func() {
			s.running.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(generous):
			t.Errorf("calls do not return within %v of their context's end", generous)
		}
	})
	return s
}

// spawn runs fn on a goroutine that the test waits for before it ends, when the context has.
func (s *fixture) spawn(fn func()) { s.running.Go(fn) }

// elsewhere returns a scene with another lock in the same environment.
func (s *fixture) elsewhere() *fixture { return newFixture(s.T, s.env, s.newLocker, s.cfg) }

// locker returns the lock under test for a client.
func (s *fixture) locker(c *framework.Client) lock.Locker {
	s.Helper()
	return s.newLocker(s.T, c, s.path)
}

// rival returns a lock that excludes the one under test.
func (s *fixture) rival(c *framework.Client) lock.Locker {
	s.Helper()
	return s.cfg.rival(s.T, c, s.path)
}

// lock locks, tells the oracle, and holds the result against what holds for all of them.
func (s *fixture) lock(ctx context.Context, l lock.Locker) (*lock.Lease, error) {
	s.Helper()
	return s.granted(l.Lock(ctx))
}

// catchUp has c's server catch up with the ensemble: TryLock may refuse by what the
// server knows, and a lagging one does not know of a release yet. A sync would not do:
// the leader answers its own clients' without having applied what it has committed.
func (s *fixture) catchUp(c *framework.Client) {
	s.Helper()
	written, err := c.Create(s.Context(), s.path+"-catch-up-", nil, framework.Ephemeral(), framework.Sequential(), framework.WithParents())
	if err == nil {
		err = c.Delete(s.Context(), written)
	}
	if err != nil {
		s.Fatalf("catching up: %v", err)
	}
}

// tryLock is lock for TryLock.
func (s *fixture) tryLock(ctx context.Context, l lock.Locker) (*lock.Lease, error) {
	s.Helper()
	return s.granted(l.TryLock(ctx))
}

func (s *fixture) granted(lease *lock.Lease, err error) (*lock.Lease, error) {
	s.Helper()
	switch {
	case lease == nil && err == nil:
		err = errors.New("neither a lease nor an error")
	case lease != nil && err != nil:
		s.Errorf("got a lease together with error %v", err)
	case err == nil && s.cfg.permits > 0:
		s.oracle.EnterPermits(lease, 1, s.cfg.permits)
	case err == nil && s.cfg.shared:
		s.oracle.EnterShared(lease)
	case err == nil:
		s.oracle.Enter(lease)
	}
	return lease, err
}

// grantedAlone is granted for a lock that excludes the one under test.
func (s *fixture) grantedAlone(lease *lock.Lease, err error) (*lock.Lease, error) {
	if err == nil {
		s.oracle.Enter(lease)
	}
	return lease, err
}

// release is the lease's Release, of which the oracle is told.
func (s *fixture) release(ctx context.Context, l *lock.Lease) error {
	s.oracle.Leave(l)
	return l.Release(ctx)
}

// mustLock locks or fails the test.
func (s *fixture) mustLock(l lock.Locker) *lock.Lease {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), generous)
	defer cancel()
	lease, err := s.lock(ctx, l)
	if err != nil {
		s.Fatalf("Lock: %v", err)
	}
	return lease
}

func (s *fixture) mustRelease(l *lock.Lease) {
	s.Helper()
	if err := s.release(s.Context(), l); err != nil {
		s.Fatalf("Release: %v", err)
	}
}

// occupy has another client hold the lock until the function that it returns is called.
func (s *fixture) occupy() (vacate func()) {
	s.Helper()
	return s.occupyBy(s.env.Client(s))
}

// occupyBy is occupy for a client that there is.
func (s *fixture) occupyBy(c *framework.Client) (vacate func()) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), generous)
	defer cancel()
	lease, err := s.grantedAlone(s.rival(c).Lock(ctx))
	if err != nil {
		s.Fatalf("Lock by another client: %v", err)
	}
	return func() {
		s.Helper()
		s.mustRelease(lease)
	}
}

// An outcome is what a Lock on another goroutine came to.
type outcome struct {
	lease *lock.Lease
	err   error
}

// lockLater calls Lock on a goroutine of its own.
func (s *fixture) lockLater(ctx context.Context, l lock.Locker) <-chan outcome {
	done := make(chan outcome, 1)
	s.spawn(func() {
		lease, err := s.lock(ctx, l)
		done <- outcome{lease, err}
	})
	return done
}

// mustGet waits for the lease that a Lock on another goroutine gets.
func (s *fixture) mustGet(done <-chan outcome) *lock.Lease {
	s.Helper()
	got := must.Receive(s, done, "the grant")
	if got.err != nil {
		s.Fatalf("Lock: %v", got.err)
	}
	return got.lease
}

// mustWait fails the test if Lock has returned when nothing moves any more.
func (s *fixture) mustWait(done <-chan outcome) {
	s.Helper()
	s.env.Quiesce()
	select {
	case got := <-done:
		s.Fatalf("Lock returned %v, %v; want it to wait", got.lease, got.err)
	default:
	}
}

// mustBeFree fails the test unless a new client can acquire the lock.
func (s *fixture) mustBeFree() {
	s.Helper()
	s.mustBeFreeFor(s.env.Client(s))
}

// mustBeFreeFor is mustBeFree for a client that there is.
func (s *fixture) mustBeFreeFor(c *framework.Client) {
	s.Helper()
	s.mustRelease(s.mustLock(s.locker(c)))
	s.occupyBy(c)()
}

// mustBeQuiet fails the test unless the lock leaves nothing behind at the server.
func (s *fixture) mustBeQuiet(c *framework.Client) {
	s.Helper()
	var left []string
	for end := time.Now().Add(generous); ; {
		var err error
		if left, err = leftovers(s.Context(), c, s.path); err != nil {
			s.Fatal(err)
		}
		if len(left) == 0 || time.Now().After(end) {
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	if len(left) > 0 {
		s.Errorf("still there after %v: %v", generous, left)
	}
	if n := s.oracle.Holders(); n > 0 {
		s.Errorf("%d holders at the end", n)
	}
	zktest.Eventually(s, generous, "the client's session has no ephemeral node", func() bool {
		return len(s.env.Ephemerals(s, c.Session().ID)) == 0
	})
}

// within calls fn, and fails the test if it does not return.
func within(t testing.TB, what string, fn func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	return must.Receive(t, done, "the end of "+what)
}

// leftovers returns the ephemeral nodes at path and below it, as c sees them once its
// server is up to date.
func leftovers(ctx context.Context, c *framework.Client, path string) ([]string, error) {
	if err := c.Sync(ctx, path); err != nil {
		return nil, err
	}
	tree, err := c.GetTree(ctx, path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, err
	}
	var found []string
	for at, node := range tree {
		if proto.IsSession(node.Stat.EphemeralOwner) {
			found = append(found, at)
		}
	}
	return found, nil
}

// goroutines returns how many goroutines the caller's synctest bubble has, and 0 outside of one.
// The runtime distinguishes bubbles only in the headers of its stack dump, where the caller comes
// first. For example: "goroutine 7 [select, synctest bubble 5]:".
func goroutines() int {
	dump := make([]byte, 1<<20)
	for {
		n := runtime.Stack(dump, true)
		if n < len(dump) {
			dump = dump[:n]
			break
		}
		dump = make([]byte, 2*len(dump))
	}
	header, _, _ := bytes.Cut(dump, []byte("\n"))
	_, bubble, in := bytes.Cut(header, []byte("synctest bubble "))
	if !in {
		return 0
	}
	bubble = bytes.TrimSuffix(bubble, []byte(":"))
	return bytes.Count(dump, append([]byte("synctest bubble "), bubble...))
}
