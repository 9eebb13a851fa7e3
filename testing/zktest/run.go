package zktest

import (
	"context"
	"testing"
	"time"
)

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
