package barrier_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestReadyMovesTheVersionWhereMembersAreNotRead: members may not read one another's znodes. The directory has
// another version nevertheless once ready was created, so that a late deletion of an earlier ready can't meet it.
func TestReadyMovesTheVersionWhereMembersAreNotRead(t *testing.T) {
	t.Parallel()
	recipetest.Subtest(t, "embedded", func(t *testing.T, env *zkenv.Env) {
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
		first := recipetest.Later(t.Context(), newDouble(t, env.Client(t, acls), path, 2).Enter)
		second := recipetest.Later(t.Context(), newDouble(t, env.Client(t, acls), path, 2).Enter)
		recipetest.Granted(t, first)
		recipetest.Granted(t, second)
		if after, _ := must.Get2(other.Exists(t.Context(), path))(t); after.Version == before.Version {
			t.Errorf("the directory has version %d, as before ready was created", after.Version)
		}
	}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
}

// TestMembersBeginWhereTheirPathsFillARequest: the checks of all members are more than a request may have. They
// begin without them.
func TestMembersBeginWhereTheirPathsFillARequest(t *testing.T) {
	t.Parallel()
	recipetest.Subtest(t, "embedded", func(t *testing.T, env *zkenv.Env) {
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
	t.Parallel()
	recipetest.Subtest(t, "embedded", func(t *testing.T, env *zkenv.Env) {
		path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
		d, theirs := newDouble(t, route.Client(t), path, 2), newDouble(t, other, path, 2)
		staying := recipetest.Later(t.Context(), theirs.Enter)
		l := recipetest.Granted(t, recipetest.Later(t.Context(), d.Enter))
		stays := recipetest.Granted(t, staying)
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
	t.Parallel()
	recipetest.Subtest(t, "embedded", func(t *testing.T, env *zkenv.Env) {
		path, route, way := recipetest.Path(t), env.Route(t), env.Route(t)
		d, theirs := newDouble(t, route.Client(t), path, 2), newDouble(t, way.Client(t), path, 2)
		staying := recipetest.Later(t.Context(), theirs.Enter)
		l := recipetest.Granted(t, recipetest.Later(t.Context(), d.Enter))
		stays := recipetest.Granted(t, staying)
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
