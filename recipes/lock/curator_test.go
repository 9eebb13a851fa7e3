package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// Scenarios of Curator's own tests that no other test has; lab/interop/curator-tests.md
// has all of them.

// As testAttemptLockFailedException: what failed first is what Lock returns, and
// the attempt's znode goes.
func TestCuratorErrorOfTheAttemptIsReturned(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/curator/failed"
		c, route := onRoute(t, env, framework.WithRetry(retry.Never()))
		lost := route.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.DropReply})
		ctx, cancel := context.WithTimeout(t.Context(), generous)
		defer cancel()
		wantErr(t, "Lock", errOf(newMutex(t, c, path).Lock(ctx)), framework.ErrUnknownOutcome)
		must.Receive(t, lost.Hit(), "the loss of the reply")
		observer := env.Client(t)
		awaitContenders(t, observer, path, 0)
		mustRelease(t, mustLock(t, newMutex(t, observer, path)))
	})
}

// As testNodeDeletedCleanlyWithFaults: the queue can't be listed, for good. Several attempts share the
// listing, and get its error, even if the clean-up fails at first.
func TestCuratorQueueThatCanNotBeListed(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const path, attempts = "/curator-unreadable", 12
		c, route := onRoute(t, env)
		operator := newOperator(t, env) // since 3.8.4 and 3.9.2, exists needs READ
		blind := acl.Entry{Perms: acl.Create | acl.Delete, Scheme: "world", ID: "anyone"}
		_, err := operator.Create(t.Context(), path, nil, framework.WithACL(blind, digest("operator", "secret", acl.All)))
		if err != nil && !errors.Is(err, framework.ErrNodeExists) {
			t.Fatal(err)
		}
		before, _ := must.Get2(operator.Exists(t.Context(), path))(t)
		failing := route.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: fault.CutBefore})
		m := newMutex(t, c, path, recipes.WithACL(acl.Open()...))
		var locking []<-chan result
		for range attempts {
			locking = append(locking, lockLater(t.Context(), m))
		}
		wantErr(t, "TryLock", errOf(m.TryLock(t.Context())), framework.ErrNoAuth)
		for _, done := range locking {
			wantErr(t, "Lock", failed(t, done, "the error"), framework.ErrNoAuth)
		}
		zktest.Eventually(t, generous, "the attempts' znodes are gone", func() bool {
			st, ok, err := operator.Exists(t.Context(), path)
			return err == nil && ok && st.NumChildren == 0
		})
		must.Receive(t, failing.Hit(), "the failure to delete")
		if st, _, err := operator.Exists(t.Context(), path); err != nil || st.Cversion == before.Cversion {
			t.Errorf("no child came or went (%v): there was no attempt", err)
		}
	})
}

// As LeaderLatch.testNoServerAtStart and testProperCloseWithoutConnectionEstablished: an acquire
// that begins before there is a server succeeds once there is one. Without a server, the wait ends
// with the client.
func TestCuratorLockBeforeThereIsAServer(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		srv.Refuse()
		var clients [2]*framework.Client
		var waiting [2]<-chan result
		for i := range clients {
			c := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial), framework.WithRetry(retry.Forever(time.Second))))(t)
			defer c.Close()
			clients[i], waiting[i] = c, lockLater(t.Context(), newMutex(t, c, "/curator/early"))
		}
		await(time.Minute)
		wantErr(t, "close", clients[0].Close(), nil)
		wantErr(t, "Lock of the closed client", failed(t, waiting[0], "the end of the wait"), framework.ErrClosed)
		srv.Accept()
		mustRelease(t, granted(t, waiting[1], "the other's grant"))
	})
}
