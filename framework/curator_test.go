package framework_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// As EnabledSessionExpired.testInjectedWatchedEvent: the server stays away, and watchers
// nevertheless learn that their session is over.
func TestCuratorWatchersLearnOfTheEndWithoutAServer(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		mustCreate(t, c, "/watched", "")
		w := mustWatch(t, c, "/watched", framework.WatchData)
		timeout := c.Session().Timeout
		disconnect(srv)
		began := time.Now()
		wantEvent(t, w, framework.EventSessionEnded)
		wantWithin(t, began, timeout)
	})
}

// As Framework.testCreateACLWithReset: a session that follows another has its credentials.
func TestCuratorCredentialsAreThereInTheNextSession(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c := virtual(t, srv, framework.WithAuth("digest", []byte(user+":"+secret)),
			framework.WithACL(acl.Creator()...), framework.WithStateListener(seen.add))
		mustCreate(t, c, "/mine", secretData)
		wantErr(t, "a stranger's get", last(virtual(t, srv).Get(t.Context(), "/mine")), framework.ErrNoAuth)
		must.OK(t, srv.Expire(c.Session().ID))
		seen.await(t, connecting, connected, suspended, lost, connected)
		wantData(t, c, "/mine", secretData)
	})
}

// As Framework.testListenerConnectedAtStart (CURATOR-72): whoever asks for something before
// there is a server, the first state after the start is Connected.
func TestCuratorFirstStateIsConnected(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		srv.Refuse()
		var seen trail
		c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial),
			framework.WithRetry(retry.Forever(time.Second)), framework.WithStateListener(seen.add))
		created := background(func() error { return last(c.Create(t.Context(), "/queued", nil)) })
		<-time.After(time.Minute)
		seen.await(t, connecting)
		srv.Accept()
		wantErr(t, "what was asked for before", <-created, nil)
		seen.await(t, connecting, connected)
	})
}

// As BackgroundStates.testConnectionStateListener and Framework.testReconnectAfterLoss: two
// outages that each cost a session; what is asked for meanwhile fails, and then succeeds.
func TestCuratorTwoLongOutages(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c := virtual(t, srv, framework.WithRetry(retry.Never()), framework.WithStateListener(seen.add))
		want := []framework.State{connecting, connected}
		for range 2 {
			disconnect(srv)
			want = append(want, suspended, lost)
			seen.await(t, want...)
			wantErr(t, "a read while Lost", last(c.Exists(t.Context(), "/")), framework.ErrNotConnected)
			srv.Accept()
			want = append(want, connected)
			seen.await(t, want...)
			wantExists(t, c, "/", true)
		}
	})
}

// As WithCluster.testSessionSurvives: one server after another is away for a while.
func TestCuratorSessionSurvivesARollingRestart(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c := virtual(t, srv, framework.WithSessionTimeout(10*time.Second), framework.WithStateListener(seen.add))
		node := mustCreate(t, c, "/here", "", framework.Ephemeral())
		id := c.Session().ID
		for _, f := range srv.Frontends() {
			disconnect(f)
			<-time.After(5 * time.Second)
			f.Accept()
			if _, ok, err := c.Exists(t.Context(), node); err != nil || !ok {
				t.Fatalf("the ephemeral znode exists: %v, %v", ok, err)
			}
		}
		states := seen.states()
		if slices.Contains(states, lost) || !slices.Contains(states, suspended) || c.Session().ID != id {
			t.Errorf("states %v, session %#x; want session %#x still, and the connection to break", states, c.Session().ID, id)
		}
	}, zkserver.WithFrontends(3))
}

// As FrameworkEdges.testDeleteChildrenConcurrently: two delete the same tree.
func TestCuratorTreeIsDeletedByTwoAtOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		clients := []*framework.Client{virtual(t, srv), virtual(t, srv)}
		for i := range 10 {
			for j := range 10 {
				mustCreate(t, clients[0], fmt.Sprintf("/tree/%d/%d", i, j), "")
			}
		}
		var both sync.WaitGroup
		var errs [2]error
		for i, c := range clients {
			both.Go(func() { errs[i] = c.DeleteTree(t.Context(), "/tree") })
		}
		both.Wait()
		for _, err := range errs {
			if err != nil && !errors.Is(err, framework.ErrNoNode) {
				t.Errorf("DeleteTree beside another: %v", err)
			}
		}
		if left := slices.DeleteFunc(srv.Paths(), func(path string) bool { return len(path) < 5 || path[:5] != "/tree" }); len(left) != 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// As FailedDeleteManager.testWithNamespaceAndLostSession: a guaranteed delete that was asked
// for while there was no session is done in the next.
func TestCuratorGuaranteedDeleteOfTheNextSession(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c := virtual(t, srv, framework.WithRetry(retry.Never()), framework.WithStateListener(seen.add), framework.WithNamespace("ns"))
		node := mustCreate(t, c, "/stays", "")
		disconnect(srv)
		seen.await(t, connecting, connected, suspended, lost)
		wantErr(t, "delete while Lost", c.Delete(t.Context(), node, framework.Guaranteed()), framework.ErrNotConnected)
		srv.Accept()
		seen.await(t, connecting, connected, suspended, lost, connected)
		zktest.Eventually(t, patience, "the delete is done", func() bool { return c.PendingDeletes() == 0 })
		wantExists(t, c, node, false)
	})
}

// As SessionFailRetryLoop.testRetry: work that has to be done within one session begins again in
// the next, by a loop of the user's.
func TestCuratorWorkOfOneSessionIsDoneAgain(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		var attempts, firsts int
		work := func(ctx context.Context) error {
			attempts++
			if err := c.AwaitConnected(ctx); err != nil {
				return err
			}
			bound := c.InSession(c.Session().ID)
			if _, err := bound.Create(ctx, fmt.Sprintf("/first-%d", attempts), nil, framework.Ephemeral()); err != nil {
				return err
			}
			firsts++
			if attempts == 1 {
				if err := srv.Expire(c.Session().ID); err != nil {
					return retry.Permanent(err)
				}
			}
			_, err := bound.Create(ctx, "/second", nil)
			return err
		}
		must.OK(t, retry.Do(t.Context(), retry.Times(5, time.Second), work))
		wantEqual(t, "times that the first part was done", firsts, 2)
		wantExists(t, c, "/first-1", false)
	})
}

// As TestTtlNodes: the server removes a znode that was not changed for its TTL, and no other.
func TestCuratorTTLZnodesGo(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		node := mustCreate(t, c, "/deep/for-a-while", "", framework.TTL(time.Hour))
		exists := func(when string, want bool) {
			t.Helper()
			wantExists(t, c, node, want)
		}
		<-time.After(50 * time.Minute)
		must.Get(c.Set(t.Context(), node, []byte("touched"), framework.AnyVersion))(t)
		<-time.After(50 * time.Minute)
		exists("50 minutes after a change", true)
		<-time.After(20 * time.Minute)
		exists("70 minutes after it", false)
	})
}

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
	wantEqual(t, "state", c.State(), connecting)
	wantErr(t, "create", last(c.Create(within(t, 10*time.Millisecond), "/a", nil)), context.DeadlineExceeded)
}

// As testBlockUntilConnectedConnectTimeout and …AwaitReconnect.
func TestCuratorAwaitsTheServersReturn(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	proxy.Refuse()
	c := newClient(t, proxy.Addr())
	wantErr(t, "AwaitConnected without a server", c.AwaitConnected(within(t, 10*time.Millisecond)), context.DeadlineExceeded)
	proxy.Heal()
	wantErr(t, "AwaitConnected after the server came", c.AwaitConnected(within(t, patience)), nil)
	wantErr(t, "AwaitConnected when connected", c.AwaitConnected(within(t, patience)), nil)
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
	wantErr(t, "guaranteed delete of nothing", c.Delete(t.Context(), dir+"/missing", framework.Guaranteed()), framework.ErrNoNode)
	wantEqual(t, "pending deletions of nothing", c.PendingDeletes(), 0)
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
	wantErr(t, "delete under an ended context", c.Delete(ended, ordinary), context.Canceled)
	g.open()
	zktest.Eventually(t, patience, "the guaranteed delete is done", func() bool { return c.PendingDeletes() == 0 && c.State() == connected })
	for path, want := range map[string]bool{ordinary: true, guaranteed: false} {
		wantExists(t, c, path, want)
	}
}
