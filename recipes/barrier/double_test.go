package barrier_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestNoMemberEntersBeforeAll has five members use one barrier again and again. A count outside
// ZooKeeper says how many have come and gone.
func TestNoMemberEntersBeforeAll(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const members, rounds = 5, 4
		path := recipetest.Path(t)
		var came, left [rounds]atomic.Int32
		var wg sync.WaitGroup
		for i := range members {
			route := env.Route(t)
			d := newDouble(t, route.Client(t), path, members)
			wg.Go(func() {
				for round := range rounds {
					if i == round {
						route.Cut() // an outage lets no member in early
					}
					came[round].Add(1)
					l, err := d.Enter(t.Context())
					if err != nil {
						t.Errorf("Enter: %v", err)
						return
					}
					if n := came[round].Load(); n != members {
						t.Errorf("round %d: %d of %d members had come when one was let in", round, n, members)
					}
					left[round].Add(1)
					if err := d.Leave(t.Context(), l); err != nil {
						t.Errorf("Leave: %v", err)
						return
					}
					if n := left[round].Load(); n != members {
						t.Errorf("round %d: %d of %d members had left when one was let out", round, n, members)
					}
				}
			})
		}
		wg.Wait()
		recipetest.AwaitChildren(t, env.Client(t), path, 0)
	})
}

// TestAReadyLeftBehindLetsNoMemberPass: the last member of an earlier round died. Curator lets the
// first of five members pass alone.
func TestAReadyLeftBehindLetsNoMemberPass(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		must.Get(c.Create(t.Context(), path+"/ready", nil, framework.WithParents()))(t)
		first := recipetest.Later(t.Context(), newDouble(t, c, path, 2).Enter)
		recipetest.AwaitChildren(t, c, path, 1) // ready is gone
		env.Quiesce()
		if len(first) > 0 {
			t.Fatal("the first member passed alone")
		}
		d := newDouble(t, env.Client(t), path, 2)
		second := recipetest.Later(t.Context(), d.Enter)
		leaveInTurn(t, d, recipetest.Granted(t, first), d, recipetest.Granted(t, second))
	})
}

// TestAMemberThatWithdrawsIsNotCounted: CURATOR-80, -318.
func TestAMemberThatWithdrawsIsNotCounted(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		d := newDouble(t, c, path, 2)
		ctx, cancel := context.WithCancel(t.Context())
		impatient := recipetest.Later(ctx, d.Enter)
		recipetest.AwaitChildren(t, c, path, 1)
		cancel()
		var wait *lease.WaitError
		if got := must.Receive(t, impatient, "the end of Enter"); !errors.Is(got.Err, context.Canceled) || !errors.As(got.Err, &wait) {
			t.Errorf("Enter: %v, want a WaitError with Canceled", got.Err)
		}
		recipetest.AwaitChildren(t, c, path, 0)
		first := recipetest.Later(t.Context(), d.Enter)
		recipetest.AwaitChildren(t, c, path, 1)
		env.Quiesce()
		if len(first) > 0 {
			t.Error("a member that withdrew was counted")
		}
		second := recipetest.Later(t.Context(), d.Enter)
		leaveInTurn(t, d, recipetest.Granted(t, first), d, recipetest.Granted(t, second))
	})
}

// TestALostReplyIsNoFailure: Curator fails with NodeExists on its own znode, and leaves it.
func TestALostReplyIsNoFailure(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		d := newDouble(t, route.Client(t), path, 1)
		for range 2 {
			route.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.DropReply})
			l := must.Get(d.Enter(t.Context()))(t)
			route.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: fault.DropReply})
			must.OK(t, d.Leave(t.Context(), l))
			recipetest.AwaitChildren(t, env.Client(t), path, 0)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded, zkenv.Standalone))
}

// TestALostMemberKeepsNoOtherIn: a member's session ends while all are in. Its lease is lost, and
// the others leave without it.
func TestALostMemberKeepsNoOtherIn(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		d, dying := newDouble(t, env.Client(t), path, 3), newDouble(t, route.Client(t), path, 3)
		entering := []<-chan recipetest.Outcome{recipetest.Later(t.Context(), d.Enter), recipetest.Later(t.Context(), d.Enter)}
		lost := recipetest.Later(t.Context(), dying.Enter)
		leases := []*lease.Lease{recipetest.Granted(t, entering[0]), recipetest.Granted(t, entering[1])}
		theirs := recipetest.Granted(t, lost)
		leaving := []<-chan error{leaveLater(t.Context(), d, leases[0]), leaveLater(t.Context(), d, leases[1])}
		env.Quiesce()
		if len(leaving[0])+len(leaving[1]) > 0 {
			t.Error("a member was let out before all had left")
		}
		route.Expire(t)
		must.Receive(t, theirs.Lost(), "the loss")
		left(t, leaving[0])
		left(t, leaving[1])
		recipetest.Fails(t, "Leave with a lost lease", dying.Leave(t.Context(), theirs), lease.ErrLost)
	})
}

// TestAMemberEntersAgainInItsNextSession: its session ends while it waits.
func TestAMemberEntersAgainInItsNextSession(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path, c := env.Route(t), recipetest.Path(t), env.Client(t)
		d := newDouble(t, c, path, 2)
		again := newDouble(t, route.Client(t), path, 2)
		first := recipetest.Later(t.Context(), again.Enter)
		recipetest.AwaitChildren(t, c, path, 1)
		route.Expire(t)
		second := recipetest.Later(t.Context(), d.Enter)
		leaveInTurn(t, again, recipetest.Granted(t, first), d, recipetest.Granted(t, second))
	})
}

// TestLeaveObeysItsContext: CURATOR-233. The lease is released nevertheless.
func TestLeaveObeysItsContext(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		d := newDouble(t, c, path, 2)
		entering := recipetest.Later(t.Context(), d.Enter)
		leases := []*lease.Lease{nil, recipetest.Granted(t, recipetest.Later(t.Context(), d.Enter))}
		leases[0] = recipetest.Granted(t, entering)
		slices.SortFunc(leases, func(a, b *lease.Lease) int { return slices.Compare([]byte(a.Node()), []byte(b.Node())) })
		for _, l := range leases[:1] { // the first waits with its znode
			ctx, cancel := context.WithCancel(t.Context())
			leaving := leaveLater(ctx, d, l)
			env.Quiesce()
			cancel()
			recipetest.Fails(t, "Leave", must.Receive(t, leaving, "the end of Leave"), context.Canceled)
			recipetest.Fails(t, "lease after Leave", l.Err(), lease.ErrReleased)
		}
		left(t, leaveLater(t.Context(), d, leases[1]))
		recipetest.AwaitChildren(t, c, path, 0)
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

// TestRequestsOfADouble counts what the page says.
func TestRequestsOfADouble(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		first, last, path := env.Route(t), env.Route(t), recipetest.Path(t)
		one, other := newDouble(t, first.Client(t), path, 2), newDouble(t, last.Client(t), path, 2)
		must.Get(env.Client(t).Create(t.Context(), path, nil, framework.WithParents()))(t)
		first.ResetRequests()
		last.ResetRequests()
		entering := recipetest.Later(t.Context(), one.Enter)
		recipetest.AwaitChildren(t, env.Client(t), path, 1)
		env.Quiesce()
		theirs := recipetest.Granted(t, recipetest.Later(t.Context(), other.Enter))
		l := recipetest.Granted(t, entering)
		recipetest.MustHaveSent(t, "Enter of the first", first, path, fault.Create, fault.GetChildren, fault.Exists)
		recipetest.MustHaveSent(t, "Enter of the last", last, path, fault.Create, fault.GetChildren, fault.GetData, fault.Multi)
		leaveInTurn(t, one, l, other, theirs)
		if n := len(recipetest.Ops(first, path)) + len(recipetest.Ops(last, path)); n > 10 {
			t.Errorf("%d requests of two that leave, want at most 10: %v, %v", n, recipetest.Ops(first, path), recipetest.Ops(last, path))
		}
	}, zkenv.Only("on a busy machine a hold lasts 50 ms, and looks at its znode", zkenv.Embedded))
}

// TestAnOutageEndsNoLeave cuts the connection of each member while it waits for the other to leave.
func TestAnOutageEndsNoLeave(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		impatient := framework.WithRetry(retry.Never())
		for which, name := range []string{"the first by name", "the last by name"} {
			path := recipetest.Path(t)
			routes := []*zkenv.Route{env.Route(t), env.Route(t)}
			doubles := []*barrier.Double{newDouble(t, routes[0].Client(t, impatient), path, 2), newDouble(t, routes[1].Client(t, impatient), path, 2)}
			entering := recipetest.Later(t.Context(), doubles[0].Enter)
			leases := []*lease.Lease{nil, recipetest.Granted(t, recipetest.Later(t.Context(), doubles[1].Enter))}
			leases[0] = recipetest.Granted(t, entering)
			early := which // it leaves before the other
			if leases[1].Node() < leases[0].Node() {
				early = 1 - which
			}
			leaving := leaveLater(t.Context(), doubles[early], leases[early])
			env.Quiesce()
			routes[early].Refuse()
			routes[early].Cut()
			env.Quiesce()
			if len(leaving) > 0 {
				t.Errorf("%s: Leave returned %v in an outage", name, <-leaving)
				continue
			}
			routes[early].Heal()
			routes[early].Rules().Add(fault.Rule{Op: fault.GetChildren, Path: path, Action: fault.CutBefore})
			left(t, leaveLater(t.Context(), doubles[1-early], leases[1-early]))
			left(t, leaving)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}
