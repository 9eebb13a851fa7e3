package group_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// newGroup returns a group that has been read and is closed at the end of the test.
func newGroup(t testing.TB, c *framework.Client, path string, opts ...group.Option) *group.Group {
	t.Helper()
	g := must.Get(group.New(c, path, opts...))(t)
	t.Cleanup(func() { must.OK(t, g.Close(context.WithoutCancel(t.Context()))) })
	must.OK(t, g.Ready(recipetest.Patient(t)))
	return g
}

func mustJoin(t testing.TB, g *group.Group, id, data string) *node.Node {
	t.Helper()
	n := must.Get(g.Join(id, []byte(data)))(t)
	must.OK(t, n.Await(recipetest.Patient(t)))
	return n
}

// members returns the members of the group, as in "a=1 b=2".
func members(g *group.Group) string {
	var all []string
	for id, data := range g.Members() {
		all = append(all, fmt.Sprintf("%s=%s", id, data))
	}
	return strings.Join(all, " ")
}

func awaitMembers(t testing.TB, g *group.Group, want string) {
	t.Helper()
	zktest.Eventually(t, recipetest.Generous, "the members "+want, func() bool { return members(g) == want })
}

// follow ranges over the group's changes until the end of the test. A line is as in "a=1 b=2".
func follow(t testing.TB, g *group.Group) *recipetest.Diary {
	t.Helper()
	return recipetest.Follow(t, g.Changes, func(all []group.Member) string {
		var line []string
		for _, m := range all {
			line = append(line, fmt.Sprintf("%s=%s", m.ID, m.Data))
		}
		return strings.Join(line, " ")
	})
}

func TestMembershipFollowsTheTree(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, operator, route := recipetest.Path(t), env.Client(t), env.Route(t)
		looking, other := newGroup(t, env.Client(t), path), newGroup(t, route.Client(t), path)
		if got := members(looking); got != "" {
			t.Errorf("members %q of a group without a znode, want none", got)
		}
		if _, stale := looking.Stale(); stale || !looking.Filled() {
			t.Error("the group is stale, or not filled, once it is ready")
		}
		b := mustJoin(t, other, "b", "2")
		awaitMembers(t, looking, "b=2")
		mustJoin(t, looking, "a", "1")
		awaitMembers(t, looking, "a=1 b=2")
		awaitMembers(t, other, "a=1 b=2")
		must.OK(t, b.Set(recipetest.Patient(t), []byte("3")))
		awaitMembers(t, looking, "a=1 b=3")
		must.Get(operator.Create(t.Context(), path+"/c", []byte("4"), framework.Ephemeral()))(t)
		awaitMembers(t, looking, "a=1 b=3 c=4")
		route.Expire(t)
		awaitMembers(t, other, "a=1 b=3 c=4")
		awaitMembers(t, looking, "a=1 b=3 c=4")
		must.OK(t, b.Close(t.Context()))
		awaitMembers(t, looking, "a=1 c=4")
		mustJoin(t, other, "b", "5")
		awaitMembers(t, looking, "a=1 b=5 c=4")
		must.OK(t, other.Close(t.Context()))
		awaitMembers(t, looking, "a=1 c=4")
	})
}

func TestJoinRefuses(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		g := newGroup(t, env.Client(t), recipetest.Path(t))
		n := mustJoin(t, g, "a", "")
		recipetest.Says(t, recipetest.Err(g.Join("a", nil)), `id "a": this Group has joined with it and has not left`)
		if _, err := g.Join("b", make([]byte, 1<<20)); !errors.Is(err, framework.ErrTooLarge) {
			t.Errorf("Join with too much data: %v, want ErrTooLarge", err)
		}
		must.OK(t, n.Close(t.Context()))
		mustJoin(t, g, "a", "again")
		must.OK(t, g.Close(t.Context()))
		recipetest.Fails(t, "Join after Close", recipetest.Err(g.Join("c", nil)), framework.ErrClosed)
		if err := g.Close(t.Context()); err != nil {
			t.Errorf("Close again: %v, want nil", err)
		}
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded, zkenv.Standalone))
}

// The members restart one after another, while a watcher looks.
func TestSettleEndsARollingRestart(t *testing.T) {
	t.Parallel()
	const settle = time.Second
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		path := recipetest.Path(t)
		joining := newGroup(t, env.Client(t), path)
		nodes := make(map[string]*node.Node)
		for _, id := range []string{"a", "b", "c"} {
			nodes[id] = mustJoin(t, joining, id, "old")
		}
		looking := newGroup(t, env.Client(t), path, recipes.WithSettle(settle))
		awaitMembers(t, looking, "a=old b=old c=old")
		seen := follow(t, looking)
		zktest.Eventually(t, recipetest.Generous, "the members at first", func() bool { return seen.String() == "a=old b=old c=old" })
		for _, id := range []string{"a", "b", "c"} {
			must.OK(t, nodes[id].Close(t.Context()))
			<-time.After(settle / 10)
			mustJoin(t, joining, id, "new")
			<-time.After(settle / 10)
		}
		zktest.Eventually(t, recipetest.Generous, "one change", func() bool {
			return seen.String() == "a=old b=old c=old | a=new b=new c=new"
		})
	})
}

// Changes that never end are returned after ten times the settle time.
func TestSettleIsBounded(t *testing.T) {
	t.Parallel()
	const settle = time.Second
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		path := recipetest.Path(t)
		joining, looking := newGroup(t, env.Client(t), path), newGroup(t, env.Client(t), path, recipes.WithSettle(settle))
		n := mustJoin(t, joining, "a", "0")
		awaitMembers(t, looking, "a=0")
		seen := follow(t, looking)
		zktest.Eventually(t, recipetest.Generous, "the members at first", func() bool { return seen.String() == "a=0" })
		began := time.Now()
		for i := 1; seen.String() == "a=0"; i++ {
			must.OK(t, n.Set(recipetest.Patient(t), fmt.Append(nil, i)))
			<-time.After(settle / 4)
			if time.Since(began) > 11*settle {
				t.Fatalf("no change within %v", time.Since(began))
			}
		}
		if took := time.Since(began); took < 9*settle {
			t.Errorf("a change after %v, although changes went on; want 10 settle times", took)
		}
	}, zkenv.Only("the times are exact in virtual time", zkenv.Embedded, zkenv.EmbeddedEnsemble))
}

// A member that begins to join is not listed before its znode exists.
func TestSelfIsNotListedBeforeItExists(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, route := recipetest.Path(t), env.Route(t)
		g := newGroup(t, route.Client(t), path)
		stuck := route.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/a", Action: fault.HoldRequest})
		n := must.Get(g.Join("a", []byte("1")))(t)
		<-stuck.Hit()
		if got := members(g); got != "" || n.Exists() {
			t.Errorf("members %q before the znode exists, want none", got)
		}
		stuck.Release()
		awaitMembers(t, g, "a=1")
	})
}

// Changes returns the latest members alone, and ends with the Group.
func TestChangesEndWithTheGroup(t *testing.T) {
	t.Parallel()
	for _, settle := range []time.Duration{0, time.Minute} {
		recipetest.Subtest(t, settle.String(), func(t *testing.T, env *zkenv.Env) {
			g := newGroup(t, env.Client(t), recipetest.Path(t), recipes.WithSettle(settle))
			ended := make(chan int, 1)
			go func() {
				n := 0
				for range g.Changes(t.Context()) {
					n++
				}
				ended <- n
			}()
			env.Quiesce()
			must.OK(t, g.Close(t.Context()))
			if n := <-ended; n != 1 {
				t.Errorf("%d changes, want the members at first", n)
			}
		}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded, zkenv.Standalone))
	}
}

// counted returns how many requests of each kind the client sent since the last call.
func counted(route *zkenv.Route) map[fault.Op]int {
	counts := make(map[fault.Op]int)
	for _, r := range route.Requests() {
		switch r.Op {
		case fault.Ping, fault.Connect, fault.SetWatches, fault.CloseSession:
		default:
			counts[r.Op]++
		}
	}
	route.ResetRequests()
	return counts
}

// TestGroupRequests counts the requests of a group at the server.
func TestGroupRequests(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, other, route := recipetest.Path(t), env.Client(t), env.Route(t)
		for _, id := range []string{"a", "b", "c"} {
			opts := []framework.CreateOption{framework.Ephemeral(), framework.WithParents()}
			must.Get(other.Create(t.Context(), path+"/"+id, nil, opts...))(t)
		}
		c := route.Client(t)
		check := func(what string, want map[fault.Op]int) {
			t.Helper()
			env.Quiesce()
			if got := counted(route); !maps.Equal(got, want) {
				t.Errorf("%s: requests %v, want %v", what, got, want)
			}
		}
		must.OK(t, c.AwaitConnected(recipetest.Patient(t)))
		counted(route)
		g := newGroup(t, c, path)
		awaitMembers(t, g, "a= b= c=")
		check("a look at three members", map[fault.Op]int{
			fault.AddWatch: 1, fault.Multi: 1, // the watch, and what has been committed
			fault.GetData: 4, fault.GetChildren: 1, // the path and the members, whose lengths are not known yet, and the listing
		})
		must.Get(other.Set(t.Context(), path+"/a", []byte("1"), framework.AnyVersion))(t)
		awaitMembers(t, g, "a=1 b= c=")
		check("a change", map[fault.Op]int{fault.GetData: 1})
		must.OK(t, other.Delete(t.Context(), path+"/b"))
		awaitMembers(t, g, "a=1 c=")
		check("a member that leaves", nil)

		mustJoin(t, g, "d", "4")
		awaitMembers(t, g, "a=1 c= d=4")
		check("a member that joins, and is read", map[fault.Op]int{
			fault.Create: 1, fault.Exists: 1, fault.GetData: 1,
		})
	}, zkenv.Only("one server counts them all", zkenv.Embedded, zkenv.Standalone))
}
