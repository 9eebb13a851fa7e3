package lock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// While the client can only read, nothing is granted. A holder and a waiter keep their places if
// the session survives.
func TestLockWhileReadOnly(t *testing.T) {
	t.Parallel()
	eachKind(t, kindsThat(kind.exclusive), func(t *testing.T, k kind) {
		synctest.Test(t, func(t *testing.T) { playReadOnly(t, k) })
	})
}

func playReadOnly(t *testing.T, k kind) {
	t.Helper()
	const path = "/readonly/lock"
	srv := virtualServer(t, zkserver.WithFrontends(3), zkserver.WithLeader(0),
		zkserver.WithSyncLimit(2), zkserver.WithReadOnlyMode(true))
	options := []framework.Option{framework.WithReadOnly(), framework.WithSessionTimeout(40 * time.Second)}
	holding, waiting := k.lock(t, virtualClient(t, srv, options...), path), virtualClient(t, srv, options...)
	lease := mustLock(t, holding)
	queued := make(chan result, 1)
	next := k.lock(t, waiting, path)
	go func() { // ends with the lock
		lease, err := next.Lock(t.Context())
		queued <- result{lease: lease, err: err}
	}()
	await(time.Second)
	for _, f := range srv.Frontends()[:2] {
		f.Refuse()
		f.Isolate()
		f.Cut()
	}
	zktest.Eventually(t, time.Minute, "the state ReadOnly", func() bool {
		return waiting.State() == framework.ReadOnly
	})
	other := k.lock(t, waiting, "/readonly/other")
	began := time.Now()
	if _, err := other.Lock(t.Context()); !errors.Is(err, framework.ErrReadOnly) {
		t.Errorf("lock: %v, want %v", err, framework.ErrReadOnly)
	}
	if _, err := other.TryLock(t.Context()); !errors.Is(err, framework.ErrReadOnly) || errors.Is(err, lock.ErrHeld) {
		t.Errorf("try lock: %v, want %v", err, framework.ErrReadOnly)
	}
	if took := time.Since(began); took != 0 {
		t.Errorf("refused after %v, want at once", took)
	}
	await(2 * time.Second)
	for _, f := range srv.Frontends()[:2] {
		f.Accept()
		f.Heal()
	}
	zktest.Eventually(t, time.Minute, "the quorum", func() bool {
		return waiting.State() == framework.Connected
	})
	if err := lease.Err(); err != nil {
		t.Fatalf("the lease was lost: %v", err)
	}
	mustRelease(t, lease)
	got := <-queued
	if got.err != nil {
		t.Fatalf("the waiter failed: %v", got.err)
	}
	mustRelease(t, got.lease)
}
