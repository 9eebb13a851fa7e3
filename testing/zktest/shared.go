package zktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// suite is the servers that the tests of a package share. It is the one variable
// of the package: between TestMain and the tests there is no other way.
var suite shared //nolint:gochecknoglobals // as said

// A shared is one package's run of tests.
type shared struct {
	active atomic.Bool // within Main

	mu       sync.Mutex // guards following; held while a server starts: all others want it too
	opts     []Option
	server   *Server
	ensemble *Ensemble
	failure  error // of the first start that failed; not tried again

	skips   sync.Mutex // guards following
	skipped int
	reason  string // why there are no servers; empty if there are
}

// Shared returns the server that all tests of the package share. The first call
// starts it, [Main] closes it; without Main the test fails. A test must leave the
// server as it was: to break one, use [Run]. Missing ZooKeepers and failed tests
// are dealt with as in Run.
func Shared(t testing.TB) *Server {
	t.Helper()
	require(t)
	server, err := suite.sharedServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	showLogAfter(t, server.logSize(), server)
	return server
}

// SharedEnsemble is [Shared] for an ensemble of three servers. A test may break it, if no other
// runs at the same time: SharedEnsemble repairs what the previous test has left.
func SharedEnsemble(t testing.TB) *Ensemble {
	t.Helper()
	require(t)
	ensemble, err := suite.sharedEnsemble(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range ensemble.Servers {
		showLogAfter(t, server.logSize(), server)
	}
	return ensemble
}

func (s *shared) sharedServer(ctx context.Context) (*Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return nil, err
	}
	if s.server == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
		defer cancel()
		s.server, s.failure = Start(ctx, s.opts...)
	}
	return s.server, s.failure
}

func (s *shared) sharedEnsemble(ctx context.Context) (*Ensemble, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	if s.ensemble == nil {
		s.ensemble, s.failure = StartEnsemble(ctx, minMembers, s.opts...)
		return s.ensemble, s.failure
	}
	return s.ensemble, s.ensemble.Repair(ctx)
}

func (s *shared) usableLocked() error {
	if !s.active.Load() {
		return errors.New("zktest: shared servers need zktest.Main in TestMain")
	}
	return s.failure
}

// open begins the run. The reason is why there will be no servers, if so.
func (s *shared) open(opts []Option, reason string) {
	s.skips.Lock()
	s.reason = reason
	s.skips.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts = opts
	s.active.Store(true)
}

// close ends the run: it closes what has been started.
func (s *shared) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active.Store(false)
	var errs []error
	if s.server != nil {
		errs = append(errs, s.server.Close())
	}
	if s.ensemble != nil {
		errs = append(errs, s.ensemble.Close())
	}
	s.server, s.ensemble = nil, nil
	return errors.Join(errs...)
}

// countSkip records that a test was skipped. Without Main it is not reported later.
func (s *shared) countSkip(reason string) {
	s.skips.Lock()
	s.skipped++
	s.reason = reason
	s.skips.Unlock()
	if !s.active.Load() {
		s.reportSkips(os.Stderr)
	}
}

// reportSkips writes the line that keeps skipped tests from being taken for
// passed ones.
func (s *shared) reportSkips(w io.Writer) {
	s.skips.Lock()
	defer s.skips.Unlock()
	if s.reason != "" {
		fmt.Fprintf(w, "zktest: SKIPPED %d tests, and all examples, for want of a server: %s\n", s.skipped, s.reason)
	}
}

// unavailable returns why tests get no server, as the environment variable
// ZK_TEST has it: "" if they do get one. Its error is a reason to fail.
func unavailable() (reason string, err error) {
	switch demand := os.Getenv("ZK_TEST"); demand {
	case "none":
		return "ZK_TEST=none", nil
	case "", "auto", "required":
		_, err := locate()
		if errors.Is(err, ErrMissing) && demand != "required" {
			return strings.TrimPrefix(err.Error(), "zktest: "), nil
		}
		return "", err
	default:
		return "", fmt.Errorf("zktest: ZK_TEST=%q: must be auto, required or none", demand)
	}
}

// require lets the test go on if it can have a server. Otherwise the test is
// skipped, and counted, or fails.
func require(t testing.TB) {
	t.Helper()
	reason, err := unavailable()
	if err != nil {
		t.Fatal(err)
	}
	if reason != "" {
		suite.countSkip(reason)
		t.Skipf("SKIPPED, NOT TESTED: %s", reason)
	}
}
