package node_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

func TestNodeIsMadeAgainAfterExpiry(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		n := kept(t, c, path, "alive")
		mustAwait(t, n)
		seen := follow(t, n)
		before := mustHold(t, observer, c, path, "alive")
		route.Expire(t)
		zktest.Eventually(t, recipetest.Generous, "the znode in the next session", func() bool {
			return c.Session().ID != before.EphemeralOwner && n.Exists()
		})
		after := mustHold(t, observer, c, path, "alive")
		if after.Czxid <= before.Czxid {
			t.Errorf("czxid %#x after %#x: want another znode", after.Czxid, before.Czxid)
		}
		seen.awaitKinds(t, "Made Away Made")
		if away := seen.changes()[1]; !errors.Is(away.Err, framework.ErrNotConnected) && !errors.Is(away.Err, framework.ErrSessionEnded) {
			t.Errorf("Away for %v, want the connection or the session", away.Err)
		}
	})
}

func TestNodeIsMadeAgainAfterDeletion(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, operator, path := env.Client(t), env.Client(t), recipetest.Path(t)+"/n"
		n := kept(t, c, path, "alive")
		mustAwait(t, n)
		seen := follow(t, n)
		kinds := "Made"
		for range 3 {
			before := mustHold(t, operator, c, path, "alive")
			must.OK(t, operator.Delete(t.Context(), path))
			zktest.Eventually(t, recipetest.Generous, "another znode", func() bool {
				st, ok, err := operator.Exists(t.Context(), path)
				return err == nil && ok && st.Czxid != before.Czxid
			})
			mustHold(t, operator, c, path, "alive")
			// A znode that is deleted before its Node has watched it is no change.
			kinds += " Away Made"
			seen.awaitKinds(t, kinds)
		}
		if away := seen.changes()[1]; !errors.Is(away.Err, framework.ErrNoNode) || away.Path != path {
			t.Errorf("%+v: want the path, and ErrNoNode", away)
		}
	})
}

// The data that is set while the client has no connection is what the next session's znode has.
func TestNodeIsMadeAgainWithDataSetDuringTheOutage(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		c := route.Client(t, framework.WithSessionTimeout(2*time.Second))
		n := kept(t, c, path, "old")
		mustAwait(t, n)
		mustHold(t, observer, c, path, "old")
		route.Refuse()
		route.Cut()
		zktest.Eventually(t, recipetest.Generous, "the outage", func() bool { return !n.Exists() })
		ctx := recipetest.Within(t, 100*time.Millisecond)
		recipetest.Fails(t, "Set without a connection", n.Set(ctx, []byte("new")), context.DeadlineExceeded)
		zktest.Eventually(t, recipetest.Generous, "the session's end", func() bool { return !exists(t, observer, path) })
		route.Heal()
		mustAwait(t, n)
		mustHold(t, observer, c, path, "new")
	})
}

// A sequential one keeps its number, too.
func TestNodeIsMadeAgainThroughAHundredFlaps(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]node.Option{"plain": nil, "sequential": {node.Sequential()}} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			route, observer := env.Route(t), env.Client(t)
			c := route.Client(t)
			n := kept(t, c, recipetest.Path(t)+"/n-", "alive", opts...)
			mustAwait(t, n)
			path := n.Path()
			before := mustHold(t, observer, c, path, "alive")
			route.ResetRequests()
			const flaps = 100
			for range flaps {
				route.Cut()
				zktest.Eventually(t, recipetest.Generous, "the connection", func() bool { return c.State() == framework.Connected })
			}
			zktest.Eventually(t, recipetest.Generous, "the znode", n.Exists)
			after := mustHold(t, observer, c, n.Path(), "alive")
			if after.EphemeralOwner != before.EphemeralOwner && !env.Kind().Virtual() {
				t.Log("the machine was too busy to keep the session through all flaps")
				return
			}
			if after.Czxid != before.Czxid || n.Path() != path {
				t.Error("the znode was created again within its session")
			}
			if creates := route.Count(fault.Create); creates != 0 {
				t.Errorf("%d creations by %d flaps within a session, want none", creates, flaps)
			}
			if looks := route.Count(fault.Exists); looks > 2*flaps {
				t.Errorf("%d looks by %d flaps, want one each", looks, flaps)
			}
		})
	}
}

// The client takes its session for over while the ensemble still has it.
func TestANodeOfOurFormerSessionIsReplacedAtOnce(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		n := kept(t, c, path, "alive")
		mustAwait(t, n)
		before := mustHold(t, observer, c, path, "alive")
		route.ResetRequests()
		route.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
		route.Cut()
		zktest.Eventually(t, recipetest.Generous, "the next session", func() bool {
			return c.State() == framework.Connected && c.Session().ID != before.EphemeralOwner
		})
		began := time.Now()
		mustAwait(t, n)
		if took := time.Since(began); env.Kind().Virtual() && took > 100*time.Millisecond {
			t.Errorf("replaced after %v, want a few round trips", took)
		}
		after := mustHold(t, observer, c, path, "alive")
		if route.Count(fault.Multi) != 1 || route.Count(fault.Delete) != 0 {
			t.Fatalf("%d transactions, %d deletions; want the former session's znode to be replaced by one transaction",
				route.Count(fault.Multi), route.Count(fault.Delete))
		}
		zktest.Eventually(t, recipetest.Generous, "the former session's end", func() bool {
			return len(env.Ephemerals(t, before.EphemeralOwner)) == 0
		})
		zktest.Never(t, c.Session().Margin+time.Second, "another znode", func() bool {
			st, ok, err := observer.Exists(t.Context(), path)
			return err == nil && (!ok || st.Czxid != after.Czxid)
		})
	})
}

// A create of the former session's, whose reply was lost, is known by that session.
func TestAnUnknownCreateOfOurFormerSessionIsReplaced(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		mustParents(t, c, path)
		former := c.Session().ID
		lost := route.Rules().Add(fault.Rule{Op: fault.Create, Path: path, Action: fault.DropReply})
		route.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
		n := kept(t, c, path, "alive")
		<-lost.Hit()
		mustAwait(t, n)
		if c.Session().ID == former {
			t.Fatal("the session did not change: the test shows nothing")
		}
		mustHold(t, observer, c, path, "alive")
	})
}

func TestAnotherSessionsNodeIsNotTaken(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]node.Option{
		"ephemeral": nil, "persistent": {node.Persistent()}, "TTL": {node.WithTTL(time.Minute)},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			c, other, path := env.Client(t), env.Client(t), recipetest.Path(t)+"/n"
			must.Get(other.Create(t.Context(), path, []byte("theirs"), framework.Ephemeral(), framework.WithParents()))(t)
			n := kept(t, c, path, "ours", opts...)
			seen := follow(t, n)
			recipetest.Fails(t, "Await", n.Await(recipetest.Patient(t)), node.ErrTaken)
			recipetest.Fails(t, "Set", n.Set(recipetest.Patient(t), []byte("ours, too")), node.ErrTaken)
			mustHold(t, c, other, path, "theirs")
			if n.Exists() {
				t.Error("Exists returns true while the znode is another session's")
			}
			must.OK(t, other.Delete(t.Context(), path))
			zktest.Eventually(t, recipetest.Generous, "the Node's own znode", n.Exists)
			mustAwait(t, n)
			if opts == nil {
				mustHold(t, other, c, path, "ours, too")
			} else {
				mustBeOf(t, other, path, "ours, too")
			}
			seen.awaitKinds(t, "Taken Made")
		})
	}
}

func TestCloseWithoutAServer(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		n := kept(t, c, path, "alive")
		mustAwait(t, n)
		route.Refuse()
		route.Cut()
		zktest.Eventually(t, recipetest.Generous, "the outage", func() bool { return c.State() != framework.Connected })
		recipetest.Fails(t, "Close", n.Close(recipetest.Within(t, 100*time.Millisecond)), context.DeadlineExceeded)
		recipetest.Fails(t, "Await", n.Await(t.Context()), framework.ErrClosed)
		recipetest.Fails(t, "Set", n.Set(t.Context(), nil), framework.ErrClosed)
		if !exists(t, observer, path) {
			t.Fatal("the znode is gone by itself: the test shows nothing")
		}
		route.Heal()
		zktest.Eventually(t, recipetest.Generous, "the deletion", func() bool { return !exists(t, observer, path) })
	})
}

// mustParents creates the directory of a path, which lasts as long as the test needs it.
func mustParents(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	dir, _ := zkpath.Split(path)
	must.Get(c.Create(t.Context(), dir, nil, framework.WithParents()))(t)
}
