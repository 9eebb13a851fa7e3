package zktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/freeport"
)

// startAttempts is how many draws of ports a start may use up. One is enough
// unless another process binds the same one of 22000 within the same second.
const startAttempts = 5

// Start starts a standalone server and returns when it serves clients. The caller must
// [Server.Close] it. If ctx ends first nothing is left behind.
//
// The error is [ErrMissing] if there is no ZooKeeper or no Java, names every option at fault, or
// shows the end of the server's log.
func Start(ctx context.Context, opts ...Option) (*Server, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	in, err := locate()
	if err != nil {
		return nil, err
	}
	return retryTaken(func() (*Server, error) { return startAlone(ctx, in, cfg) })
}

// retryTaken repeats a start that drew a port which another process then bound.
func retryTaken[T any](start func() (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		v, err := start()
		if err == nil || attempt == startAttempts || !errors.Is(err, errPortTaken) {
			return v, err
		}
	}
}

func startAlone(ctx context.Context, in install, cfg config) (*Server, error) {
	ports, err := freeport.Draw(1)
	if err != nil {
		return nil, fmt.Errorf("zktest: %w", err)
	}
	return startAt(ctx, ports[0], in, cfg)
}

func startAt(ctx context.Context, port int, in install, cfg config) (*Server, error) {
	dir, err := os.MkdirTemp("", "zktest-")
	if err != nil {
		return nil, fmt.Errorf("zktest: %w", err)
	}
	s := newServer(layout{dir: dir, root: dir, place: place{host: localhost, port: port}}, in, cfg)
	if err := s.layout.write(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("zktest: %w", err), s.Close())
	}
	if err := s.Restart(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// startTimeout bounds the start of a server for a test. It is generous: a
// machine that runs many packages' tests at once is slow.
const startTimeout = time.Minute

// Run starts a server for this test alone and closes it when the test has ended.
// The test fails if it does not come up, and is skipped or fails, as ZK_TEST
// says, if there is no ZooKeeper. If the test fails, the end of the server's log
// goes to the test's.
func Run(t testing.TB, opts ...Option) *Server {
	t.Helper()
	require(t)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	server, err := Start(ctx, opts...)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, server.Close)
	showLogAfter(t, 0, server)
	return server
}

// RunEnsemble is [Run] for an ensemble of n servers, 3 to 7.
func RunEnsemble(t testing.TB, n int, opts ...Option) *Ensemble {
	t.Helper()
	require(t)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	ensemble, err := StartEnsemble(ctx, n, opts...)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, ensemble.Close)
	for _, server := range ensemble.Servers {
		showLogAfter(t, 0, server)
	}
	return ensemble
}

func closeAfter(t testing.TB, closeIt func() error) {
	t.Helper()
	t.Cleanup(func() {
		if err := closeIt(); err != nil {
			t.Error(err)
		}
	})
}

// showLogAfter adds the end of a server's log to the test's if the test fails, as
// far as it was written after offset.
func showLogAfter(t testing.TB, offset int64, s *Server) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if log := s.logSince(offset); log != "" {
			t.Logf("log of ZooKeeper %s:\n%s", s.Addr(), log)
		}
	})
}
