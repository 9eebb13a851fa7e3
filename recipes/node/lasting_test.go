package node_test

import (
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

func TestPersistentOutlivesTheNodeAndTheSession(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		n := kept(t, c, path, "first", node.Persistent())
		mustAwait(t, n)
		st := mustBeOf(t, observer, path, "first")
		session := c.Session().ID
		route.Expire(t)
		zktest.Eventually(t, recipetest.Generous, "the next session", func() bool { return c.Session().ID != session && n.Exists() })
		if err := n.Set(recipetest.Patient(t), []byte("second")); err != nil {
			t.Fatal(err)
		}
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := mustBeOf(t, observer, path, "second"); after.Czxid != st.Czxid {
			t.Error("another znode after the session's end, want the same")
		}
	})
}

// operationsFor returns what a subtest of that name needs of the embedded server.
func operationsFor(name string) []zkenv.Option {
	if name == "TTL" {
		return []zkenv.Option{zkenv.AllOperations("TTL is one of them")}
	}
	return nil
}

// A Node with a TTL says that a server lacks TTL, and a Node without makes do.
func TestNodeOnAServerWithoutTTL(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		err := kept(t, c, recipetest.Path(t)+"/n", "alive", node.WithTTL(time.Minute)).Await(recipetest.Patient(t))
		if !errors.Is(err, framework.ErrUnsupported) {
			t.Errorf("Await with a TTL: %v, want ErrUnsupported", err)
		}
		mustAwait(t, kept(t, c, recipetest.Path(t)+"/n", "alive", node.Persistent()))
	}, zkenv.Versions("others have TTL", "keeper", "keeper-silent"),
		zkenv.Only("real servers have TTL", zkenv.Embedded, zkenv.EmbeddedEnsemble))
}

// A process that starts again finds its persistent znode.
func TestPersistentAdoptsAZnodeOfNoSession(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]framework.CreateOption{
		"persistent": framework.WithParents(),
		"container":  framework.Container(),
		"TTL":        framework.TTL(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				c, observer, path := env.Client(t), env.Client(t), recipetest.Path(t)+"/n"
				if _, err := observer.Create(t.Context(), path, []byte("before"), how, framework.WithParents()); err != nil {
					t.Fatal(err)
				}
				n := kept(t, c, path, "ours", node.Persistent())
				mustAwait(t, n)
				mustBeOf(t, observer, path, "ours")
			}, operationsFor(name)...)
		})
	}
}

func TestPersistentIsNotMadeOfAnotherSessionsNode(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]node.Option{"persistent": node.Persistent(), "TTL": node.WithTTL(time.Minute)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				c, other, path := env.Client(t), env.Client(t), recipetest.Path(t)+"/n"
				if _, err := other.Create(t.Context(), path, []byte("theirs"), framework.Ephemeral(), framework.WithParents()); err != nil {
					t.Fatal(err)
				}
				n := kept(t, c, path, "ours", opt)
				if err := n.Await(recipetest.Patient(t)); !errors.Is(err, node.ErrTaken) {
					t.Errorf("Await: %v, want ErrTaken", err)
				}
				mustHold(t, c, other, path, "theirs")
				if err := other.Delete(t.Context(), path); err != nil {
					t.Fatal(err)
				}
				zktest.Eventually(t, recipetest.Generous, "the Node's own znode", n.Exists)
				mustBeOf(t, other, path, "ours")
			}, operationsFor(name)...)
		})
	}
}

// The znode is there while it is kept, and gone afterwards; those that watch its data are not notified.
func TestTTLEndsWithTheNode(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c, observer, path := env.Client(t), env.Client(t), recipetest.Path(t)+"/n"
		n := kept(t, c, path, "alive", node.WithTTL(ttl))
		mustAwait(t, n)
		watch, err := observer.Watch(t.Context(), path, framework.WatchData)
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		if !exists(t, observer, path+"/touch") {
			t.Error("no child touch once Await has returned")
		}
		zktest.Never(t, 3*ttl, "the end of the znode or an event", func() bool {
			return !exists(t, observer, path) || watch.Event() != 0
		})
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !exists(t, observer, path) {
			t.Error("Close deleted the znode, want it to be there for its TTL")
		}
		zktest.Eventually(t, recipetest.Generous, "the end of the znode", func() bool { return !exists(t, observer, path) })
	}, zkenv.AllOperations("TTL is one of them"))
}

// Curator's PersistentTtlNode leaves a container that never had a child, which stays forever.
func TestACrashBeforeTheFirstTouchLeavesNothing(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		route.Rules().Add(fault.Rule{Op: fault.SetData, Path: path + "/touch", Action: fault.CutBefore, Times: fault.Forever})
		n, err := node.New(c, path, []byte("alive"), node.WithTTL(ttl))
		if err != nil {
			t.Fatal(err)
		}
		zktest.Eventually(t, recipetest.Generous, "the znode", func() bool { return exists(t, observer, path) })
		route.Refuse() // the process is gone
		route.Cut()
		if exists(t, observer, path+"/touch") {
			t.Fatal("the znode was touched: the test shows nothing")
		}
		zktest.Eventually(t, recipetest.Generous, "nothing left", func() bool { return !exists(t, observer, path) })
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}, zkenv.AllOperations("TTL is one of them"))
}

// An outage outlasts the TTL.
func TestTTLIsMadeAgainAfterALongOutage(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		n := kept(t, route.Client(t), path, "alive", node.WithTTL(time.Second))
		mustAwait(t, n)
		route.Refuse()
		route.Cut()
		zktest.Eventually(t, recipetest.Generous, "the end of the znode", func() bool { return !exists(t, observer, path) })
		route.Heal()
		zktest.Eventually(t, recipetest.Generous, "another znode", func() bool { return n.Exists() && exists(t, observer, path+"/touch") })
		mustBeOf(t, observer, path, "alive")
	}, zkenv.AllOperations("TTL is one of them"))
}

// TestPausesOfTTLBeginAgain: after a success, the first failure is followed by a short pause, whatever
// failed before.
func TestPausesOfTTLBeginAgain(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)+"/n"
		n := kept(t, route.Client(t), path, "alive", node.WithTTL(10*time.Second))
		mustAwait(t, n)
		refuse := func(times int) (took time.Duration) {
			refused := route.Rules().Add(fault.Rule{
				Op: fault.SetData, Path: path + "/touch", Action: fault.Refuse, Code: fault.NoAuth, Times: times,
			})
			must.Receive(t, refused.Hit(), "a refused touch")
			began, touched := time.Now(), route.Count(fault.SetData)
			zktest.Eventually(t, 10*time.Minute, "a touch that is not refused", func() bool {
				return refused.Hits() == times && route.Count(fault.SetData) >= touched+times && n.Await(t.Context()) == nil
			})
			return time.Since(began)
		}
		if took := refuse(8); took < 10*time.Second {
			t.Errorf("8 failures within %v: the pauses do not grow, and the test shows nothing", took)
		}
		if took := refuse(1); took > time.Second {
			t.Errorf("the attempt after one failure came %v later", took)
		}
	}, zkenv.Only("minutes have to pass", zkenv.Embedded), zkenv.AllOperations("TTL is one of them"))
}

// mustBeOf checks that the znode at the path has the data and belongs to no session.
func mustBeOf(t testing.TB, observer *framework.Client, path, data string) framework.Stat {
	t.Helper()
	if err := observer.Sync(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	got, st, err := observer.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != data {
		t.Errorf("data of %s: %q, want %q", path, got, data)
	}
	if st.EphemeralOwner > 0 {
		t.Errorf("%s belongs to the session %#x, want none", path, st.EphemeralOwner)
	}
	return st
}
