package node_test

import (
	"context"
	"strings"
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

// only returns the adoption of znodes with that data.
func only(data string) node.Option {
	return node.WithAdoption(func(found []byte) bool { return string(found) == data })
}

// TestAdoptionIsDecidedByTheLatestData: another client writes to the znode after the Node has adopted it,
// and before the Node's own write.
func TestAdoptionIsDecidedByTheLatestData(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, other, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		must.Get(other.Create(t.Context(), path, []byte("former"), framework.WithParents()))(t)
		held := route.Rules().Add(fault.Rule{Op: fault.SetData, Path: path, Action: fault.HoldRequest})
		n := kept(t, route.Client(t), path, "ours", node.Persistent(), only("former"))
		<-held.Hit()
		must.Get(other.Set(t.Context(), path, []byte("theirs"), framework.AnyVersion))(t)
		held.Release()
		recipetest.Fails(t, "Await", n.Await(recipetest.Patient(t)), node.ErrTaken)
		mustBeOf(t, other, path, "theirs")
	})
}

// TestTheNodesOwnZnodeIsAdopted: the reply to a creation or a write was lost. The znode with the Node's data
// is its own, whatever the function for others' znodes returns.
func TestTheNodesOwnZnodeIsAdopted(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]fault.Op{"a creation": fault.Create, "a write": fault.SetData} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			route, other, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
			mustParents(t, other, path)
			if op == fault.SetData {
				must.Get(other.Create(t.Context(), path, []byte("former")))(t)
			}
			lost := route.Rules().Add(fault.Rule{Op: op, Path: path, Action: fault.DropReply})
			n := kept(t, route.Client(t), path, "ours", node.Persistent(), only("former"))
			<-lost.Hit()
			zktest.Eventually(t, recipetest.Generous, "the znode", func() bool { return n.Await(recipetest.Patient(t)) == nil })
			mustBeOf(t, other, path, "ours")
		})
	}
}

// TestAnAdoptionThatFails: the function panics or blocks. Await says so, or why it can't
// know, and Close returns.
func TestAnAdoptionThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fn   func(end <-chan struct{}) bool
		want string
	}{
		"panics": {func(<-chan struct{}) bool { panic("no such format") }, "WithAdoption: a function of the user's panicked: no such format"},
		"blocks": {func(end <-chan struct{}) bool { <-end; return true }, context.DeadlineExceeded.Error()},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path, other, end := recipetest.Path(t)+"/n", env.Client(t), make(chan struct{})
			defer close(end)
			must.Get(other.Create(t.Context(), path, []byte("former"), framework.WithParents()))(t)
			adoption := node.WithAdoption(func([]byte) bool { return c.fn(end) })
			n := must.Get(node.New(env.Client(t), path, []byte("ours"), node.Persistent(), adoption))(t)
			if err := n.Await(recipetest.Within(t, time.Second)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Await: %v, want an error with %q", err, c.want)
			}
			must.OK(t, n.Close(recipetest.Patient(t)))
			mustBeOf(t, other, path, "former")
		}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded))
	}
}

// TestAClientKeepsAPathByOneNode: two Nodes of one client could not tell their znodes apart.
func TestAClientKeepsAPathByOneNode(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)+"/n"
		dir, name := zkpath.Split(path)
		view := must.Get(c.Namespace(dir[1:]))(t)
		first := must.Get(node.New(c, path, []byte("alive")))(t)
		for view, at := range map[*framework.Client]string{c: path, view: "/" + name} {
			_, err := node.New(view, at, []byte("alive"))
			if want := "another Node of this client keeps it"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a second Node: %v, want an error with %q", err, want)
			}
		}
		numbered := kept(t, c, path, "alive", node.Sequential())
		mustAwait(t, numbered)
		must.OK(t, first.Close(t.Context()))
		mustAwait(t, kept(t, c, path, "alive"))
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded, zkenv.Standalone))
}
