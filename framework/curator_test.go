package framework_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// Scenarios of Curator's own tests that no other test has; lab/interop/curator-tests.md
// has all of them.

// As testNeverConnected. Other than there, a client that never had a session
// does not lose one.
func TestCuratorNeverConnected(t *testing.T) {
	t.Parallel()
	var dials atomic.Int32
	refuse := func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		return nil, syscall.ECONNREFUSED
	}
	var seen trail
	c := newClient(t, "127.0.0.1:1", framework.WithDialer(refuse), framework.WithStateListener(seen.add))
	zktest.Eventually(t, patience, "several attempts to connect", func() bool { return dials.Load() >= 3 })
	seen.await(t, connecting)
	if got := c.State(); got != connecting {
		t.Errorf("state %v, want %v", got, connecting)
	}
	_, err := c.Create(within(t, 10*time.Millisecond), "/a", nil)
	wantErr(t, "create", err, context.DeadlineExceeded)
}

// As testBlockUntilConnectedConnectTimeout and …AwaitReconnect.
func TestCuratorAwaitsTheServersReturn(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	proxy.Refuse()
	c := newClient(t, proxy.Addr())
	err := c.AwaitConnected(within(t, 10*time.Millisecond))
	wantErr(t, "AwaitConnected without a server", err, context.DeadlineExceeded)
	proxy.Heal()
	if err := c.AwaitConnected(within(t, patience)); err != nil {
		t.Errorf("AwaitConnected after the server came: %v", err)
	}
	if err := c.AwaitConnected(within(t, patience)); err != nil {
		t.Errorf("AwaitConnected when connected: %v", err)
	}
}

// As TestFailedDeleteManager: a delete that fails is done later if it is
// guaranteed, and stays undone if it is not; what is not there is not kept.
func TestCuratorFailedDeletes(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	var g gate
	c := connect(t, proxy.Addr(), framework.WithDialer(g.dial), framework.WithRetry(retry.Never()), framework.WithSessionTimeout(20*time.Second))
	dir := fresh(t)
	ordinary, guaranteed := mustCreate(t, c, dir+"/ordinary", ""), mustCreate(t, c, dir+"/guaranteed", "")
	err := c.Delete(t.Context(), dir+"/missing", framework.Guaranteed())
	wantErr(t, "guaranteed delete of nothing", err, framework.ErrNoNode)
	if n := c.PendingDeletes(); n != 0 {
		t.Errorf("%d deletions of nothing are pending", n)
	}
	g.shut()
	proxy.Cut()
	zktest.Eventually(t, patience, "the cut is noticed", func() bool { return c.State() == suspended })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for path, opts := range map[string][]framework.DeleteOption{ordinary: nil, guaranteed: {framework.Guaranteed()}} {
		if err := c.Delete(within(t, 10*time.Millisecond), path, opts...); err == nil {
			t.Errorf("delete of %s succeeded without a connection", path)
		}
	}
	if err := c.Delete(ended, ordinary); !errors.Is(err, context.Canceled) {
		t.Errorf("delete under an ended context: %v", err)
	}
	g.open()
	zktest.Eventually(t, patience, "the guaranteed delete is done", func() bool { return c.PendingDeletes() == 0 && c.State() == connected })
	for path, want := range map[string]bool{ordinary: true, guaranteed: false} {
		if _, stands, err := c.Exists(t.Context(), path); err != nil || stands != want {
			t.Errorf("%s stands: %v (%v), want %v", path, stands, err, want)
		}
	}
}
