package lock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// The tests of this file are scenarios of bugs that users of other
// lock libraries have reported. lab/interop/peer-bugs.md lists all of them, with those that other files
// answer. Each runs for every kind of lock that it can concern.

// peer runs a scenario for every kind that it can concern.
func peer(t *testing.T, threads string, scenario func(t *testing.T, env *zkenv.Env, k kind, path string)) {
	t.Helper()
	t.Parallel()
	t.Log("answers", threads)
	concerned := kindsThat(kind.exclusive, func(k kind) bool { return !slices.Contains([]string{"local", "multi"}, k.name) })
	eachKindAndEnv(t, concerned, scenario, oneOfEach())
}

// TestPeerAbandonedWaitsLeaveNoWatches: samuel/go-zookeeper#110, zalando/nakadi#1263, apache/curator#1225.
func TestPeerAbandonedWaitsLeaveNoWatches(t *testing.T) {
	t.Parallel()
	eachKindInVirtualTime(t, kindsThat(kind.exclusive), func(t *testing.T, k kind, srv *zkserver.Server) {
		held := mustLock(t, k.lock(t, virtualClient(t, srv), "/watches"))
		l := k.lock(t, virtualClient(t, srv), "/watches")
		await(time.Second)
		before := srv.Watches()
		for range 50 {
			done := lockLater(recipetest.Within(t, time.Second), l)
			wantErr(t, "Lock", failed(t, done, "the end of the wait"), context.DeadlineExceeded)
		}
		await(time.Second)
		if n := srv.Watches() - before; n > 1 {
			t.Errorf("%d watches of 50 abandoned waits, want one on the holder's znode", n)
		}
		mustRelease(t, held)
	})
}

func TestPeerCallsFromAStateListener(t *testing.T) {
	peer(t, "python-zk/kazoo#356, python-zk/kazoo#381, apache/curator#283, apache/curator#693", func(t *testing.T, env *zkenv.Env, k kind, path string) {
		c, route := onRoute(t, env)
		l := k.lock(t, c, path)
		results := make(chan error, 16)
		defer c.OnState(func(change framework.StateChange) {
			if change.To == framework.Connected {
				results <- lock.Do(t.Context(), l, func(context.Context, *lock.Lease) error { return nil })
			}
		})()
		must.OK(t, must.Receive(t, results, "the lock in the first call"))
		route.Cut()
		must.OK(t, must.Receive(t, results, "the lock in the second call"))
	})
}

func TestPeerOneRetryLayer(t *testing.T) {
	peer(t, "apache/curator#1078", func(t *testing.T, env *zkenv.Env, k kind, path string) {
		const retries = 3
		c, route := onRoute(t, env, framework.WithRetry(retry.Times(retries, time.Millisecond)))
		fails := route.Rules().Add(fault.Rule{Op: k.create, Path: path + "/**", Action: fault.CutBefore, Times: fault.Forever})
		_, err := k.lock(t, c, path).Lock(t.Context())
		var exhausted *retry.ExhaustedError
		if !errors.As(err, &exhausted) || exhausted.Attempts != retries+1 {
			t.Errorf("Lock: %v, want an ExhaustedError after %d attempts", err, retries+1)
		}
		if n := fails.Hits(); n > retries+1 {
			t.Errorf("%d creates, want at most %d", n, retries+1)
		}
		fails.Remove()
		awaitEphemerals(t, c, path, 0)
	})
}

func TestPeerRetry_wakes_at_reconnection(t *testing.T) {
	peer(t, "apache/curator#585, apache/curator#705, apache/curator#854", func(t *testing.T, env *zkenv.Env, k kind, path string) {
		c, route := onRoute(t, env, framework.WithRetry(retry.Times(3, time.Hour)))
		l := k.lock(t, c, path)
		cut := route.Rules().Add(fault.Rule{Op: k.create, Path: path + "/**", Action: fault.CutBefore})
		mustRelease(t, mustLock(t, l)) // within an hour
		if cut.Hits() != 1 {
			t.Error("the create was not cut")
		}
		route.Expire(t)
		mustRelease(t, mustLock(t, l))
	})
}
