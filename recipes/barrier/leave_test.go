package barrier_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestReadyMovesTheVersionWhereMembersAreNotRead: members may not read one another's znodes. The directory has
// another version nevertheless once ready was created, so that a late deletion of an earlier ready can't meet it.
func TestReadyMovesTheVersionWhereMembersAreNotRead(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, other := recipetest.Path(t), env.Client(t)
		must.Get(other.Create(t.Context(), path, nil, framework.WithParents()))(t)
		before, _ := must.Get2(other.Exists(t.Context(), path))(t)
		acls := framework.WithACLProvider(func(znode string) []acl.Entry {
			perms := acl.All
			if znode != path+"/ready" {
				perms &^= acl.Read
			}
			return []acl.Entry{{Perms: perms, Scheme: "world", ID: "anyone"}}
		})
		bothEnter(t, env, newDouble(t, env.Client(t, acls), path, 2), newDouble(t, env.Client(t, acls), path, 2))
		if after, _ := must.Get2(other.Exists(t.Context(), path))(t); after.Version == before.Version {
			t.Errorf("the directory has version %d, as before ready was created", after.Version)
		}
	}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
}

// TestMembersBeginWhereTheirPathsFillARequest: the checks of all members are more than a request may have. They
// begin without them.
func TestMembersBeginWhereTheirPathsFillARequest(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path := recipetest.Path(t) + "/" + strings.Repeat("long", 1000)
		c := env.Client(t, framework.WithMaxPacket(16<<10, 1<<20))
		var entering []<-chan recipetest.Outcome
		for range 5 {
			entering = append(entering, recipetest.Later(t.Context(), newDouble(t, c, path, 5).Enter))
		}
		for _, one := range entering {
			recipetest.Granted(t, one)
		}
	}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
}

// leaveListsNobody is a Leave in an outage that ends with its context. The client has its connection again at the end.
func leaveListsNobody(t *testing.T, env *zkenv.Env, route *zkenv.Route, d *barrier.Double, l *lease.Lease) {
	t.Helper()
	route.Refuse()
	route.Cut()
	ctx, cancel := context.WithCancel(t.Context())
	leaving := leaveLater(ctx, d, l)
	env.Quiesce()
	cancel()
	if err := must.Receive(t, leaving, "the end of Leave"); err == nil {
		t.Error("Leave has returned nil, and another member is in")
	}
	route.Heal()
	<-time.After(time.Minute) // virtual
}

// TestTheFormerRoundIsListedBehindACommit: Leave listed no member, in an outage. The next Enter looks for ready, and not
// before a commit: a leader that was deposed and doesn't know it replies to a sync from its memory.
func TestTheFormerRoundIsListedBehindACommit(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
		d, theirs := newDouble(t, route.Client(t), path, 2), newDouble(t, other, path, 2)
		stays, l := bothEnter(t, env, theirs, d)
		leaveListsNobody(t, env, route, d, l)
		commit := route.Rules().Add(fault.Rule{Op: fault.Multi, Path: path + "**", Action: fault.HoldReply})
		looked := route.Rules().Add(fault.Rule{Op: fault.Exists, Path: path + "/ready", Action: fault.Pass})
		again := recipetest.Later(t.Context(), d.Enter)
		must.Receive(t, commit.Hit(), "a transaction of Enter")
		env.Quiesce()
		if n := looked.Hits(); n != 0 {
			t.Errorf("Enter looked %d times before it knew of the commit", n)
		}
		commit.Release()
		mustWait(t, env, "while a member of the former round is in", again)
		left(t, leaveLater(t.Context(), theirs, stays))
		second := recipetest.Later(t.Context(), theirs.Enter)
		recipetest.Granted(t, again)
		recipetest.Granted(t, second)
	}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
}

// TestNoMemberOfTheFormerRoundIsMetWithoutItsReady: Leave listed no member, in an outage. The other member leaves, and the
// deletion of its znode is late, if it is a request of its own. The next Enter waits until all have entered again.
func TestNoMemberOfTheFormerRoundIsMetWithoutItsReady(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, route, way := recipetest.Path(t), env.Route(t), env.Route(t)
		d, theirs := newDouble(t, route.Client(t), path, 2), newDouble(t, way.Client(t), path, 2)
		stays, l := bothEnter(t, env, theirs, d)
		leaveListsNobody(t, env, route, d, l)
		held := way.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: fault.HoldRequest})
		leaving := leaveLater(t.Context(), theirs, stays)
		env.Quiesce()
		again := recipetest.Later(t.Context(), d.Enter)
		mustWait(t, env, "while the other one leaves", again)
		held.Release()
		left(t, leaving)
		mustWait(t, env, "once the other one has left", again)
		second := recipetest.Later(t.Context(), theirs.Enter)
		recipetest.Granted(t, again)
		recipetest.Granted(t, second)
	}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
}

// TestTheLastMemberLeavesNothingBehind: the transaction by which the last member leaves is not sent, or its reply is
// lost, or ready has changed meanwhile. Leave returns nil, and the member's znode is gone; so is ready, unless it has changed.
func TestTheLastMemberLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		action fault.Action
		left   int
	}{
		"nothing goes wrong":    {fault.Pass, 0},
		"it is not sent":        {fault.CutBefore, 0},
		"its reply is lost":     {fault.DropReply, 0},
		"the directory changes": {fault.HoldRequest, 1},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
			d := newDouble(t, route.Client(t), path, 1)
			l := recipetest.Granted(t, recipetest.Later(t.Context(), d.Enter))
			rule := route.Rules().Add(fault.Rule{Op: fault.Multi, Path: path + "**", Action: tt.action})
			leaving := leaveLater(t.Context(), d, l)
			must.Receive(t, rule.Hit(), "the transaction")
			if tt.left > 0 {
				must.Get(other.Set(t.Context(), path, nil, framework.AnyVersion))(t)
				rule.Release()
			}
			left(t, leaving)
			recipetest.AwaitChildren(t, other, path, tt.left)
			if err := l.Err(); !errors.Is(err, lease.ErrReleased) {
				t.Errorf("the lease has the error %v, want ErrReleased", err)
			}
		}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
	}
}

// The first member in the order of the names dies when the second one has released its place and
// waits. The second one is then the first, and continues to wait for the third.
func TestLeaveWaitsWhenTheFirstMemberDies(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, c := recipetest.Path(t), env.Client(t)
		d := newDouble(t, c, path, 3)
		entering := []<-chan recipetest.Outcome{
			recipetest.Later(t.Context(), d.Enter), recipetest.Later(t.Context(), d.Enter), recipetest.Later(t.Context(), d.Enter),
		}
		var leases []*lease.Lease
		for _, done := range entering {
			leases = append(leases, recipetest.Granted(t, done))
		}
		slices.SortFunc(leases, func(a, b *lease.Lease) int { return cmp.Compare(a.Node(), b.Node()) })
		second := leaveLater(t.Context(), d, leases[1])
		recipetest.AwaitChildren(t, c, path, 3) // ready, the first and the third
		env.Quiesce()
		must.OK(t, c.Delete(t.Context(), leases[0].Node()))
		env.Quiesce()
		if len(second) > 0 {
			t.Errorf("Leave has returned while the third member is in: %v", <-second)
			return
		}
		left(t, leaveLater(t.Context(), d, leases[2]))
		left(t, second)
	}, zkenv.Only("the order of events is the client's", zkenv.Embedded, zkenv.Standalone))
}

// TestLeaveWaitsAfterAnOutage: the connection breaks at one of the requests of Leave, and the client's
// policy does not repeat the request. Leave waits for the other member nevertheless.
func TestLeaveWaitsAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"the reply to the listing is lost":  {Op: fault.GetChildren, Action: fault.DropReply},
		"the listing is not sent":           {Op: fault.GetChildren, Action: fault.CutBefore},
		"the reply to the watch is lost":    {Op: fault.GetData, Action: fault.DropReply},
		"the reply to the deletion is lost": {Op: fault.Delete, Action: fault.DropReply},
		"the deletion is not sent":          {Op: fault.Delete, Action: fault.CutBefore},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
			d := newDouble(t, route.Client(t, framework.WithRetry(retry.Never())), path, 2)
			staying, l := bothEnter(t, env, newDouble(t, other, path, 2), d)
			rule.Path = path + "**"
			hit := route.Rules().Add(rule)
			done := leaveLater(t.Context(), d, l)
			select {
			case err := <-done:
				t.Errorf("Leave has returned %v, and another member is in", err)
			case <-time.After(time.Minute): // virtual
				must.OK(t, staying.Release(t.Context()))
				left(t, done)
			}
			if hit.Hits() == 0 {
				t.Error("no request was hit")
			}
		}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
	}
}

// TestALossOfAnotherLeaseKeepsNoMemberIn: the context ends at one of the requests of Leave, because another
// lease was lost. The member's own lease was not, so Leave releases it.
func TestALossOfAnotherLeaseKeepsNoMemberIn(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]fault.Op{"at the listing": fault.GetChildren, "at the watch": fault.GetData} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
			d := newDouble(t, route.Client(t), path, 2)
			staying, l := bothEnter(t, env, newDouble(t, other, path, 2), d)
			held := route.Rules().Add(fault.Rule{Op: op, Path: path + "**", Action: fault.HoldReply})
			ctx, cancel := context.WithCancelCause(t.Context())
			done := leaveLater(ctx, d, l)
			must.Receive(t, held.Hit(), "the request")
			cancel(&lease.LostError{Path: "/other", Cause: framework.ErrSessionDeadline})
			recipetest.Fails(t, "Leave", must.Receive(t, done, "the end of Leave"), context.Canceled)
			held.Release()
			recipetest.Fails(t, "lease after Leave", l.Err(), lease.ErrReleased)
			must.OK(t, staying.Release(t.Context()))
			recipetest.AwaitChildren(t, other, path, 1) // ready
		}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
	}
}
