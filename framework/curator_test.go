package framework_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zkserver"
)

// As Framework.testListenerConnectedAtStart (CURATOR-72), NeverConnected and BlockUntilConnected: whatever is
// asked for before there is a server, the first state after the start is Connected. Unlike Curator's, a client that
// never had a session does not lose one.
func TestCuratorFirstStateIsConnected(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		srv.Refuse()
		var seen trail
		c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial),
			framework.WithRetry(retry.Forever(time.Second)), framework.WithStateListener(seen.add))
		created := background(func() error { return last(c.Create(t.Context(), "/queued", nil)) })
		<-time.After(time.Minute)
		seen.await(t, connecting)
		wantErr(t, "Create", last(c.Create(within(t, time.Second), "/a", nil)), context.DeadlineExceeded)
		wantErr(t, "AwaitConnected without a server", c.AwaitConnected(within(t, time.Second)), context.DeadlineExceeded)
		srv.Accept()
		check(t, c.AwaitConnected(t.Context()))
		wantErr(t, "what was asked for before", <-created, nil)
		seen.await(t, connecting, connected)
		wantErr(t, "AwaitConnected when connected", c.AwaitConnected(t.Context()), nil)
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
