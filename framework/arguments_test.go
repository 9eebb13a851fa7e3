package framework_test

import (
	"errors"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/testing/zkserver"
)

// A call whose arguments can't be right says all that is wrong with them. It needs no connection for that.
func TestArgumentsThatCanNotBeRight(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		srv.Refuse()
		c, ctx := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial)), t.Context()
		var version int32
		var names []string
		epoch, ephemeral := framework.WithEpoch(&version), framework.Ephemeral()
		create := func(path string, opts ...framework.CreateOption) error {
			return last(c.Create(ctx, path, nil, opts...))
		}
		txn := func(ops ...framework.TxnOp) error { return last(c.Txn(ctx, ops...)) }
		reconfig := func(change framework.ConfigChange, version int64) error {
			return last(c.Reconfig(ctx, change, version))
		}
		const server = "server.1=a:1:2:participant;2181"

		contradicting := create("relative", framework.Container(), framework.Sequential(), framework.TTL(-1), framework.Protected(), framework.Idempotent())
		unprotected := last(c.CreateAll(ctx,
			framework.OpCheck("/a", 0), framework.OpCreate("/b", nil, ephemeral), framework.OpCreate("c", nil, ephemeral, framework.Protected())))
		faulty := txn(framework.OpCreate("relative", nil), framework.TxnOp{}, framework.OpCreate("/c", nil, framework.Container()), framework.OpSet("b", nil, -3))
		options := txn(framework.OpDelete("/z", 0, framework.Guaranteed(), nil))
		reason := errors.New("no such guard")
		never := txn(framework.OpSet("/a", nil, framework.AnyVersion), framework.OpNever(reason))
		const withSession = "option KnownBySession: must be combined with Ephemeral, "
		for _, tc := range []struct {
			err  error
			want string
		}{
			{contradicting, `invalid path "relative": must start with /`},
			{contradicting, "option Container: cannot be combined with Ephemeral, Sequential or TTL"},
			{contradicting, "option TTL -1ns: must be between 1ms and"},
			{contradicting, "option Protected: must be combined with Ephemeral"},
			{contradicting, "option Idempotent: cannot be combined with Sequential or Protected"},
			{create("/x", framework.KnownBySession()), withSession},
			{create("/x", knownBySession(framework.Sequential())...), withSession},
			{create("/x", knownBySession(framework.Protected())...), withSession},
			{create("/x", knownBySession(framework.Idempotent())...), withSession},
			{create("/x", ephemeral, epoch), "option WithEpoch: must be"},
			{create("/x", knownBySession(epoch, framework.ListTo("", &names))...), "and not with ListTo"},
			{create(zkpath.Epoch("/x"), knownBySession(epoch)...), "an epoch has no epoch"},
			{c.CheckCreate("n", nil), "must start with /"},
			{c.CheckCreate("/n", nil, framework.TTL(0)), "option TTL 0s"},
			{c.CheckCreate("/n", make([]byte, framework.DefaultMaxRequest)), framework.ErrTooLarge.Error()},
			{last(c.CreateOrSet(ctx, "/x", nil, knownBySession(framework.WhenOver(func(bool) {}))...)), "WhenOver"},
			{last(c.CreateOrSet(ctx, "/x", nil, framework.Sequential())), "must not be Sequential"},

			{last(c.CreateAll(ctx)), "at least one"},
			{unprotected, "operation 0 (check /a)"},
			{unprotected, "operation 1 (create /b)"},
			{unprotected, "operation 2 (create c)"},
			{txn(), "at least one"},
			{txn(framework.OpCreate("/n", nil, knownBySession()...)), "options: must be among"},
			{faulty, "operation 0 (create relative)"},
			{faulty, "operation 1 (empty TxnOp"},
			{faulty, "operation 2 (create /c): options"},
			{faulty, "operation 3 (set b)"},
			{options, "option 1: must not be nil"},
			{options, "must be CreatedBy"},
			{never, "operation 1 (never"},
			{txn(framework.OpCheck("/z", 0, framework.CreatedBy(1))), "AtEpoch for a check"},
			{txn(framework.OpDelete("/z", 0, framework.AtEpoch(1))), "AtEpoch for a check"},

			{c.Delete(ctx, "/x", framework.AtEpoch(1)), "combined with CreatedBy"},
			{c.Delete(ctx, "/x", framework.AtEpoch(1), framework.CreatedBy(1), framework.AtVersion(1)), "combined with AtVersion"},
			{c.DeleteTree(ctx, "/"), "the root can't be deleted"},
			{c.PruneParents(ctx, "/locks/a", "/other"), "/other"},
			{c.PruneParents(ctx, "/locks", "/locks"), "/locks"},
			{c.PruneParents(ctx, "/locksmith/a", "/locks"), "/locksmith"},
			{c.PruneParents(ctx, "a", "/"), "must start with /"},
			{last(c.SetACL(ctx, "/x", nil, 0)), "must have at least one entry"},
			{create("/x", framework.WithACL(acl.Entry{})), "permissions 0: must be between 1 and 31"},
			{last(c.Ephemerals(ctx, "a")), "must start with /"},
			{last(c.ChildrenEach(ctx, "/a", "b")), "must start with /"},
			{last(c.WatchTree(ctx, "a")), "must start with /"},
			{last(c.Watch(ctx, "/x", 0)), "kind"},
			{last(c.WatchEach(ctx, 0, "/x")), "kind"},
			{last(c.WatchEach(ctx, framework.WatchData, "/", "no slash")), "must start with /"},

			{reconfig(framework.ConfigChange{}, framework.AnyVersion), "must have Join, Leave or Members"},
			{reconfig(framework.ConfigChange{Members: []string{server}, Leave: []int64{1}}, framework.AnyVersion), "must not have Members beside"},
			{reconfig(framework.ConfigChange{Join: []string{"server.1=a"}}, framework.AnyVersion), `server "server.1=a"`},
			{reconfig(framework.ConfigChange{Members: []string{server + "," + server}}, framework.AnyVersion), "must be one server"},
			{reconfig(framework.ConfigChange{Leave: []int64{1}}, -2), "version -2: must be at least 0, or AnyVersion "},
		} {
			wantText(t, tc.err, tc.want)
		}
		wantErr(t, "what can be right", c.CheckCreate("/n", []byte("data"), ephemeral), nil)
		wantErr(t, "a bad path", contradicting, framework.ErrInvalidPath)
		wantErr(t, "an operation that is none", never, reason)
		if op := new(framework.OpError); !errors.As(contradicting, &op) || op.Op != "create" || op.Path != "relative" {
			t.Errorf("%#v is no OpError of the create", contradicting)
		}
	})
}
