package barrier_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestAMemberThatComesAgainAtOnceIsCountedOnce: Enter ends with its context, and the caller enters again
// at once. The deletion of the first znode is held up, by the client's connection or by a lost reply.
func TestAMemberThatComesAgainAtOnceIsCountedOnce(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"the deletion is late":            {Op: fault.Delete, Action: fault.DelayRequest, Delay: time.Second},
		"the deletion's reply is lost":    {Op: fault.Delete, Action: fault.DropReply},
		"the deletion is not sent":        {Op: fault.Delete, Action: fault.CutBefore},
		"the creation's reply is late":    {Op: fault.Create, Action: fault.HoldReply},
		"the creation is late":            {Op: fault.Create, Action: fault.HoldRequest},
		"nothing goes wrong but the time": {Op: fault.Create, Action: fault.DropReply, Skip: 1000},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
			must.Get(other.Create(t.Context(), path, nil, framework.WithParents()))(t)
			entering := recipetest.Later(t.Context(), newDouble(t, other, path, 3).Enter)
			recipetest.AwaitChildren(t, other, path, 1)
			d := newDouble(t, route.Client(t), path, 3)
			rule := rule // of this environment
			rule.Path = path + "/*"
			held := route.Rules().Add(rule)
			ctx, cancel := context.WithCancel(t.Context())
			first := recipetest.Later(ctx, d.Enter)
			if rule.Op == fault.Create && rule.Skip == 0 {
				must.Receive(t, held.Hit(), "the creation")
			} else {
				recipetest.AwaitChildren(t, other, path, 2)
			}
			cancel()
			must.Receive(t, first, "the end of Enter")
			again := recipetest.Later(t.Context(), d.Enter)
			mustWait(t, env, "after the withdrawal", entering, again)
			held.Release()
			mustWait(t, env, "at last", entering, again)
			last := recipetest.Later(t.Context(), newDouble(t, other, path, 3).Enter)
			for _, one := range []<-chan recipetest.Outcome{entering, again, last} {
				recipetest.Granted(t, one)
			}
			held.Remove()
		})
	}
}

// TestMembersThatComeAgainAfterAnOutageAreCountedOnce: the members wait, the clients abandon their
// sessions in an outage, and the ensemble has these sessions for a while longer.
func TestMembersThatComeAgainAfterAnOutageAreCountedOnce(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, other := recipetest.Path(t), env.Client(t)
		var entering []<-chan recipetest.Outcome
		var clients []*framework.Client
		var routes []*zkenv.Route
		for range 2 {
			route := env.Route(t)
			routes, clients = append(routes, route), append(clients, route.Client(t))
			entering = append(entering, recipetest.Later(t.Context(), newDouble(t, clients[len(clients)-1], path, 3).Enter))
		}
		recipetest.AwaitChildren(t, other, path, 2)
		former := map[*framework.Client]int64{}
		for i, route := range routes {
			former[clients[i]] = clients[i].Session().ID
			route.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
			route.Cut()
		}
		zktest.Eventually(t, recipetest.Generous, "the next sessions", func() bool {
			return !slices.ContainsFunc(clients, func(c *framework.Client) bool {
				return c.State() != framework.Connected || c.Session().ID == former[c]
			})
		})
		mustWait(t, env, "in the next session", entering...)
		entering = append(entering, recipetest.Later(t.Context(), newDouble(t, other, path, 3).Enter))
		for _, one := range entering {
			recipetest.Granted(t, one)
		}
	})
}

// TestAPlaceThatWasLostIsNotCountedAgain: a member loses its place with its session, and enters again
// while the ensemble has that session.
func TestAPlaceThatWasLostIsNotCountedAgain(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
		d, theirs := newDouble(t, route.Client(t), path, 2), newDouble(t, other, path, 2)
		stays, l := bothEnter(t, env, theirs, d)
		must.OK(t, stays.Release(t.Context()))
		route.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
		route.Cut()
		must.Receive(t, l.Lost(), "the loss")
		again := recipetest.Later(t.Context(), d.Enter)
		mustWait(t, env, "after the loss", again)
		recipetest.Granted(t, recipetest.Later(t.Context(), theirs.Enter))
		recipetest.Granted(t, again)
	})
}

// TestAMemberThatHasLeftIsNotCounted: the connection breaks before the deletion of a member's znode is
// sent, and the client abandons its session. The ensemble has that session, and the znode, for a while
// longer. Once the member has left, another one that enters waits for a second one.
func TestAMemberThatHasLeftIsNotCounted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		op    fault.Op // of the request that deletes the znode
		leave func(t *testing.T, d *barrier.Double, l *lease.Lease) error
	}{
		"by Leave":   {fault.Multi, func(t *testing.T, d *barrier.Double, l *lease.Lease) error { return d.Leave(t.Context(), l) }},
		"by Release": {fault.Delete, func(t *testing.T, _ *barrier.Double, l *lease.Lease) error { return l.Release(t.Context()) }},
		"by Leave after a Release whose context has ended": {fault.Delete, func(t *testing.T, d *barrier.Double, l *lease.Lease) error {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			recipetest.Fails(t, "Release", l.Release(ended), context.Canceled)
			return d.Leave(t.Context(), l)
		}},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
			c := route.Client(t, framework.WithSessionTimeout(6*time.Second), framework.WithLeaseMargin(3*time.Second))
			d, theirs := newDouble(t, c, path, 2), newDouble(t, other, path, 2)
			stays, l := bothEnter(t, env, theirs, d)
			must.OK(t, stays.Release(t.Context()))
			deletion := route.Rules().Add(fault.Rule{Op: tt.op, Path: path + "/*", Action: fault.CutBefore})
			route.Refuse()
			left := make(chan error, 1)
			go func() { left <- tt.leave(t, d, l) }()
			must.Receive(t, deletion.Hit(), "the deletion")
			zktest.Eventually(t, recipetest.Generous, "the end of the session", func() bool { return c.State() == framework.Lost })
			route.Heal()
			must.OK(t, must.Receive(t, left, "the member to leave"))
			entering := recipetest.Later(t.Context(), theirs.Enter)
			mustWait(t, env, "after a member has left", entering)
			again := recipetest.Granted(t, recipetest.Later(t.Context(), d.Enter))
			must.OK(t, recipetest.Granted(t, entering).Release(t.Context()))
			must.OK(t, again.Release(t.Context()))
		})
	}
}

// TestADeletionOfReadyMeetsNoOther: a member finds a ready that was left behind, and its deletion is late.
// Meanwhile all come, enter, and begin to leave. Each member is let in and out.
func TestADeletionOfReadyMeetsNoOther(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]fault.Op{"a deletion": fault.Delete, "a transaction": fault.Multi} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
			must.Get(other.Create(t.Context(), path+"/ready", nil, framework.WithParents()))(t)
			slow := newDouble(t, route.Client(t), path, 3)
			held := route.Rules().Add(fault.Rule{Op: op, Path: path + "/ready", Action: fault.HoldRequest})
			first := recipetest.Later(t.Context(), slow.Enter)
			env.Quiesce() // its deletion is held, if it makes one of that kind
			d := newDouble(t, other, path, 3)
			second, third := recipetest.Later(t.Context(), d.Enter), recipetest.Later(t.Context(), d.Enter)
			two, three := recipetest.Granted(t, second), recipetest.Granted(t, third)
			var leaving sync.WaitGroup
			leaving.Go(func() { must.OK(t, d.Leave(t.Context(), two)) })
			leaving.Go(func() { must.OK(t, d.Leave(t.Context(), three)) })
			env.Quiesce()
			held.Release()
			must.OK(t, slow.Leave(t.Context(), recipetest.Granted(t, first)))
			leaving.Wait()
			recipetest.AwaitChildren(t, other, path, 0)
		}, zkenv.Only("the servers have no part in it", zkenv.Embedded, zkenv.Standalone))
	}
}

// TestAMemberWhoseLeaveEndedIsNotLetInByTheFormerRound: Leave ends with its context, or its lease, while
// another member is in. The caller enters again. The other member does not let it in, and it does not keep
// that member in.
func TestAMemberWhoseLeaveEndedIsNotLetInByTheFormerRound(t *testing.T) {
	t.Parallel()
	outage := func(route *zkenv.Route) {
		route.Refuse()
		route.Cut()
	}
	for name, tt := range map[string]struct {
		before func(*zkenv.Route)
		end    func(*testing.T, *zkenv.Route)
	}{
		"ctx ends": {func(*zkenv.Route) {}, func(*testing.T, *zkenv.Route) {}},
		"its session ends, and ctx": {func(*zkenv.Route) {}, func(t *testing.T, route *zkenv.Route) {
			t.Helper()
			route.Expire(t)
			<-time.After(time.Minute)
		}},
		"ctx ends, all in an outage":      {outage, func(*testing.T, *zkenv.Route) {}},
		"its lease is lost, in an outage": {outage, func(*testing.T, *zkenv.Route) { <-time.After(time.Minute) }},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
			d, theirs := newDouble(t, route.Client(t), path, 2), newDouble(t, other, path, 2)
			for range 8 { // each of the two is the first to leave in some rounds
				stays, l := bothEnter(t, env, theirs, d)
				ctx, cancel := context.WithCancel(t.Context())
				tt.before(route)
				leaving := leaveLater(ctx, d, l)
				env.Quiesce()
				tt.end(t, route)
				cancel()
				if err := must.Receive(t, leaving, "the end of Leave"); err == nil {
					t.Error("Leave has returned nil, and another member is in")
				}
				route.Heal()
				again := recipetest.Later(t.Context(), d.Enter)
				<-time.After(time.Minute) // virtual: the client has its connection again
				mustWait(t, env, "while a member of the former round is in", again)
				left(t, leaveLater(t.Context(), theirs, stays))
				mustWait(t, env, "once all of the former round have left", again)
				second := recipetest.Granted(t, recipetest.Later(t.Context(), theirs.Enter))
				leaveInTurn(t, theirs, second, d, recipetest.Granted(t, again))
			}
		}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
	}
}

// TestASecondLeaveWaitsForItsOwnRound: a Leave is withdrawn, the others leave and enter again, and the caller leaves
// once more. It does not wait for those, who wait for it to enter.
func TestASecondLeaveWaitsForItsOwnRound(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, other := recipetest.Path(t), env.Client(t)
		d, theirs := newDouble(t, env.Client(t), path, 2), newDouble(t, other, path, 2)
		for range 8 { // each of the two is the first to leave in some rounds
			stays, l := bothEnter(t, env, theirs, d)
			for range 2 { // the second has an ended context, and lists nothing
				ctx, cancel := context.WithCancel(t.Context())
				leaving := leaveLater(ctx, d, l)
				env.Quiesce()
				cancel()
				if err := must.Receive(t, leaving, "the end of Leave"); err == nil {
					t.Error("Leave has returned nil, and another member is in")
				}
			}
			left(t, leaveLater(t.Context(), theirs, stays))
			entering := recipetest.Later(t.Context(), theirs.Enter)
			mustWait(t, env, "alone", entering)
			left(t, leaveLater(t.Context(), d, l))
			second := recipetest.Granted(t, recipetest.Later(t.Context(), d.Enter))
			leaveInTurn(t, d, second, theirs, recipetest.Granted(t, entering))
		}
	}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
}

// TestMembersThatWithdrewLetNobodyIn: all have come, and the one that is to create ready is paused. The others
// withdraw meanwhile, and one comes that needs them. It is let in once all are there again.
func TestMembersThatWithdrewLetNobodyIn(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
		d := newDouble(t, other, path, 3)
		ctx, cancel := context.WithCancel(t.Context())
		withdrawn := []<-chan recipetest.Outcome{recipetest.Later(ctx, d.Enter), recipetest.Later(ctx, d.Enter)}
		recipetest.AwaitChildren(t, other, path, 2)
		held := route.Rules().Add(fault.Rule{Op: fault.Multi, Path: path + "**", Action: fault.HoldRequest})
		opening := recipetest.Later(t.Context(), newDouble(t, route.Client(t), path, 3).Enter)
		must.Receive(t, held.Hit(), "the creation of ready")
		cancel()
		for _, one := range withdrawn {
			must.Receive(t, one, "the end of Enter")
		}
		recipetest.AwaitChildren(t, other, path, 1)
		entering := recipetest.Later(t.Context(), d.Enter)
		recipetest.AwaitChildren(t, other, path, 2)
		held.Release()
		mustWait(t, env, "two of three", opening, entering)
		last := recipetest.Later(t.Context(), d.Enter)
		for _, one := range []<-chan recipetest.Outcome{opening, entering, last} {
			recipetest.Granted(t, one)
		}
	}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
}
