package barrier_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
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

// TestTheFormerRoundIsListedBehindACommit: Leave listed nobody, in an outage. The next Enter looks for ready, and not
// before a commit: a leader that was deposed and doesn't know it replies to a sync from its memory.
func TestTheFormerRoundIsListedBehindACommit(t *testing.T) {
	t.Parallel()
	recipetest.Subtest(t, "embedded", func(t *testing.T, env *zkenv.Env) {
		path, route, other := recipetest.Path(t), env.Route(t), env.Client(t)
		d, theirs := newDouble(t, route.Client(t), path, 2), newDouble(t, other, path, 2)
		staying := recipetest.Later(t.Context(), theirs.Enter)
		l := recipetest.Granted(t, recipetest.Later(t.Context(), d.Enter))
		stays := recipetest.Granted(t, staying)
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
		<-time.After(time.Minute) // virtual: the client has its connection again
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
