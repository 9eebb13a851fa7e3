package barrier_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
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
		one, other := bothEnter(t, env, d, d)
		if other.Node() < one.Node() { // the first by name waits with its znode
			one, other = other, one
		}
		ctx, cancel := context.WithCancel(t.Context())
		leaving := leaveLater(ctx, d, one)
		env.Quiesce()
		cancel()
		recipetest.Fails(t, "Leave", must.Receive(t, leaving, "the end of Leave"), context.Canceled)
		recipetest.Fails(t, "lease after Leave", one.Err(), lease.ErrReleased)
		left(t, leaveLater(t.Context(), d, other))
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
			one, other := bothEnter(t, env, doubles[0], doubles[1])
			leases := []*lease.Lease{one, other}
			early := which // it leaves before the other
			if other.Node() < one.Node() {
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

// TestAMemberEntersAfterItHasOpened: a member enters again while another member is in. The connection
// breaks at a request that replaces the earlier ready, and the client's policy does not repeat the
// request. The member enters only if ready was created after it.
func TestAMemberEntersAfterItHasOpened(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"the replacement is not made":          {Op: fault.Multi, Action: fault.CutBefore},
		"the reply to the replacement is lost": {Op: fault.Multi, Action: fault.DropReply},
		"the reply to a question is lost":      {Op: fault.Exists, Action: fault.DropReply},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
			d := newDouble(t, route.Client(t, framework.WithRetry(retry.Never())), path, 2)
			_, l := bothEnter(t, env, newDouble(t, other, path, 2), d)
			must.OK(t, l.Release(t.Context()))
			rule.Path = path + "/ready"
			hit := route.Rules().Add(rule)
			again := recipetest.Granted(t, recipetest.Later(t.Context(), d.Enter))
			st, exists, err := other.Exists(t.Context(), rule.Path)
			if err != nil || !exists || st.Czxid <= again.Fence() {
				t.Errorf("a member of transaction %d has entered by the ready of %d (%v, %v)", again.Fence(), st.Czxid, exists, err)
			}
			if hit.Hits() == 0 {
				t.Error("no request was hit")
			}
		}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
	}
}

func TestPanicInEnterLeavesNoMember(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv, framework.WithACLProvider(func(path string) []acl.Entry {
			if strings.HasSuffix(path, "/ready") {
				panic("no ACL")
			}
			return acl.Open()
		}))
		d := must.Get(barrier.NewDouble(c, "/double", 1))(t)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not reach the caller")
				}
			}()
			_, _ = d.Enter(t.Context())
		}()
		synctest.Wait()
		if names, _, err := c.Children(t.Context(), "/double"); err != nil || len(names) > 0 {
			t.Errorf("the barrier has %q, %v after a panic", names, err)
		}
	})
}

// A lease belongs to the barrier at its path in the ensemble, whatever view it came from. Another recipe's lease
// belongs to none.
func TestLeaveInAnotherView(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		a, b := must.Get(c.Namespace(path[1:]+"/a"))(t), must.Get(c.Namespace(path[1:]+"/b"))(t)
		mutex := must.Get(lock.NewMutex(a, "/step"))(t)
		l := must.Get(newDouble(t, a, "/step", 1).Enter(t.Context()))(t)
		recipetest.Says(t, newDouble(t, b, "/step", 1).Leave(t.Context(), l), "must be one of this double barrier")
		must.OK(t, l.Err())
		must.OK(t, newDouble(t, c, path+"/a/step", 1).Leave(t.Context(), l))
		held := must.Get(mutex.Lock(t.Context()))(t)
		recipetest.Says(t, newDouble(t, a, "/step", 1).Leave(t.Context(), held), "must be one of this double barrier")
		must.OK(t, held.Release(t.Context()))
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}
