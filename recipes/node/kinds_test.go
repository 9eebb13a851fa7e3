package node_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	logobserver "go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// A sequential Node gets a number at each creation, and leaves none of its znodes behind.
func TestSequentialGetsANumberAtEachCreation(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		n := kept(t, c, path+"-", "alive", node.Sequential())
		mustAwait(t, n)
		first := n.Path()
		before := mustHold(t, observer, c, first, "alive")
		if dir, name := zkpath.Split(first); !strings.HasPrefix(name, "_c_") || !strings.HasPrefix(path, dir) {
			t.Errorf("path %q, want a protected name", first)
		}
		route.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
		route.Cut() // the client gives its session up, and the ensemble does not
		zktest.Eventually(t, recipetest.Generous, "another znode", func() bool { return n.Exists() && n.Path() != first })
		mustHold(t, observer, c, n.Path(), "alive")
		zktest.Eventually(t, recipetest.Generous, "the end of the former one", func() bool { return !exists(t, observer, first) })
		if env.Kind().Virtual() && len(env.Ephemerals(t, before.EphemeralOwner)) != 0 {
			t.Error("the former session has a znode")
		}
		second := n.Path()
		must.OK(t, observer.Delete(t.Context(), second))
		zktest.Eventually(t, recipetest.Generous, "a third znode", func() bool { return n.Exists() && n.Path() != second })
		must.OK(t, n.Close(t.Context()))
		dir, _ := zkpath.Split(path)
		zktest.Eventually(t, recipetest.Generous, "no znode", func() bool {
			names, _, err := observer.Children(t.Context(), dir)
			return errors.Is(err, framework.ErrNoNode) || err == nil && len(names) == 0
		})
	})
}

// Data that another client writes is left alone, and reported.
func TestOverwrittenDataIsLeftAlone(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, other, path := env.Client(t), env.Client(t), recipetest.Path(t)+"/n"
		n := kept(t, c, path, "ours")
		mustAwait(t, n)
		seen := follow(t, n)
		must.Get(other.Set(t.Context(), path, []byte("theirs"), framework.AnyVersion))(t)
		seen.awaitKinds(t, "Made Overwritten")
		env.Quiesce()
		mustHold(t, other, c, path, "theirs")
		if !n.Exists() {
			t.Error("Exists returns true returns false, although the znode exists")
		}
		must.OK(t, n.Set(recipetest.Patient(t), []byte("ours again")))
		mustHold(t, other, c, path, "ours again")
		env.Quiesce()
		if got := seen.kinds(); got != "Made Overwritten" {
			t.Errorf("changes %q, want no other than Made and Overwritten", got)
		}
	})
}

// A Set whose reply is lost is known, or done again.
func TestSetWithALostReply(t *testing.T) {
	t.Parallel()
	for _, action := range []fault.Action{fault.DropReply, fault.CutBefore} {
		recipetest.Subtest(t, action.String(), func(t *testing.T, env *zkenv.Env) {
			route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
			c := route.Client(t)
			n := kept(t, c, path, "old")
			mustAwait(t, n)
			before := mustHold(t, observer, c, path, "old")
			route.Rules().Add(fault.Rule{Op: fault.SetData, Path: path, Action: action})
			must.OK(t, n.Set(recipetest.Patient(t), []byte("new")))
			if after := mustHold(t, observer, c, path, "new"); after.Czxid != before.Czxid {
				t.Error("the znode was created again, want it written")
			}
		})
	}
}

// A client that may not create the znode goes on trying, and Await says why it fails.
func TestNoAuthIsReturnedAndTriedAgain(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, operator, path := env.Client(t), env.Client(t), recipetest.Path(t)+"/n"
		mustParents(t, operator, path)
		dir, _ := zkpath.Split(path)
		recipetest.Permit(t, operator, dir, acl.Read|acl.Admin)
		n := kept(t, c, path, "ours")
		seen := follow(t, n)
		recipetest.Fails(t, "Await", n.Await(recipetest.Patient(t)), framework.ErrNoAuth)
		recipetest.Permit(t, operator, dir, acl.All)
		zktest.Eventually(t, recipetest.Generous, "the znode", n.Exists)
		seen.awaitKinds(t, "Away Made")
	})
}

func TestSetWithoutPermissionIsTriedAgain(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, operator, path := env.Client(t), env.Client(t), recipetest.Path(t)+"/n"
		noWrite := acl.Entry{Perms: acl.All &^ acl.Write, Scheme: "world", ID: "anyone"}
		n := kept(t, c, path, "former", recipes.WithACL(noWrite))
		mustAwait(t, n)
		recipetest.Fails(t, "Set", n.Set(recipetest.Patient(t), []byte("latter")), framework.ErrNoAuth)
		mustHold(t, operator, c, path, "former")
		recipetest.Permit(t, operator, path, acl.All)
		zktest.Eventually(t, recipetest.Generous, "the data of Set", func() bool { return n.Await(t.Context()) == nil })
		mustHold(t, operator, c, path, "latter")
	})
}

// Data that is too large takes nothing away from what the Node has.
func TestSetRefusesDataBeyondThePacket(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, operator, path := env.Client(t), env.Client(t), recipetest.Path(t)+"/n"
		n := kept(t, c, path, "small")
		mustAwait(t, n)
		recipetest.Fails(t, "Set", n.Set(t.Context(), make([]byte, 1<<20)), framework.ErrTooLarge)
		must.OK(t, operator.Delete(t.Context(), path))
		zktest.Eventually(t, recipetest.Generous, "the znode", func() bool { return exists(t, operator, path) })
		mustHold(t, operator, c, path, "small")
	})
}

// After the client's end the Node's methods return ErrClosed, and its Close has nothing to do. That one is closed
// before the other is no fault, which would be logged.
func TestTheClientIsClosedFirst(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		core, logs := logobserver.New(zap.InfoLevel)
		c, observer, path := env.Client(t, framework.WithLogger(zap.New(core))), env.Client(t), recipetest.Path(t)+"/n"
		first, n := kept(t, c, recipetest.Path(t)+"/n", "alive"), kept(t, c, path, "alive")
		mustAwait(t, first)
		mustAwait(t, n)
		logs.TakeAll()
		seen := follow(t, n)
		must.OK(t, first.Close(t.Context()))
		must.OK(t, c.Close())
		recipetest.Fails(t, "Await", n.Await(t.Context()), framework.ErrClosed)
		recipetest.Fails(t, "Set", n.Set(t.Context(), nil), framework.ErrClosed)
		if n.Exists() {
			t.Error("Exists returns true after the client's end")
		}
		seen.awaitKinds(t, "Made Away")
		must.OK(t, n.Close(t.Context()))
		if exists(t, observer, path) {
			t.Error("the znode exists after the session's end")
		}
		for _, line := range logs.FilterMessage("kept znode changed").All() {
			t.Errorf("%v %s %v", line.Level, line.Message, line.ContextMap())
		}
	})
}

// The errors of a wait that ends say what it waited for.
func TestAwaitEndsWithItsContext(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)+"/n"
		c := route.Client(t)
		mustParents(t, c, path)
		route.Refuse()
		route.Cut()
		zktest.Eventually(t, recipetest.Generous, "the outage", func() bool { return c.State() != framework.Connected })
		n := kept(t, c, path, "alive")
		late := errors.New("too late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, late)
		defer cancel()
		err := n.Await(ctx)
		recipetest.Fails(t, "Await", err, context.DeadlineExceeded, late, framework.ErrNotConnected)
		route.Heal()
		mustAwait(t, n)
	})
}

func TestKindsHaveNames(t *testing.T) {
	t.Parallel()
	for kind, want := range map[node.ChangeKind]string{
		node.Made: "Made", node.Away: "Away", node.Taken: "Taken", node.Overwritten: "Overwritten", 0: "ChangeKind(0)",
	} {
		if got := kind.String(); got != want {
			t.Errorf("%d: %q, want %q", int(kind), got, want)
		}
	}
}
