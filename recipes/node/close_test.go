package node_test

import (
	"context"
	"errors"
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

// TestCloseReturnsOnceTheZnodeIsGone: a Node is closed while the request that makes its znode is held up,
// or its reply is. If Close returns nil, there is no znode. If its context ends first, it says that there
// may be one.
func TestCloseReturnsOnceTheZnodeIsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op   fault.Op
		act  fault.Action
		opts []node.Option
	}{
		"a create is held up":                 {fault.Create, fault.HoldRequest, nil},
		"a create's reply is late":            {fault.Create, fault.HoldReply, nil},
		"a create's reply is lost":            {fault.Create, fault.DropReply, nil},
		"a create is not sent":                {fault.Create, fault.CutBefore, nil},
		"a sequential create is held up":      {fault.Create, fault.HoldRequest, []node.Option{node.Sequential()}},
		"a sequential create's reply is late": {fault.Create, fault.HoldReply, []node.Option{node.Sequential()}},
		"a sequential create's reply is lost": {fault.Create, fault.DropReply, []node.Option{node.Sequential()}},
		"a transaction is held up":            {fault.Multi, fault.HoldRequest, nil},
		"a transaction's reply is late":       {fault.Multi, fault.HoldReply, nil},
		"a transaction's reply is lost":       {fault.Multi, fault.DropReply, nil},
	} {
		for _, early := range []bool{false, true} {
			recipetest.Subtest(t, name+map[bool]string{false: "", true: ", and the context of Close ends"}[early], func(t *testing.T, env *zkenv.Env) {
				route, observer, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
				client := route.Client(t)
				mustParents(t, observer, path)
				dir, _ := zkpath.Split(path)
				rule := fault.Rule{Op: c.op, Path: dir + "/**", Action: c.act}
				held := route.Rules().Add(rule)
				n := must.Get(node.New(client, path, []byte("ours"), c.opts...))(t)
				if c.op == fault.Multi { // of the next session, because the ensemble has the former one
					mustAwait(t, n)
					route.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
					route.Cut()
				}
				<-held.Hit()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				closed := make(chan error, 1)
				go func() { closed <- n.Close(ctx) }()
				if early {
					<-time.After(10 * time.Millisecond)
					cancel()
					if err := must.Receive(t, closed, "the end of Close"); err != nil &&
						(!errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), path)) {
						t.Errorf("Close: %v, want the end of its context and the path", err)
					} else if err == nil && left(t, observer, client, dir) != 0 {
						t.Error("Close has returned nil, and the znode exists")
					}
					held.Release()
					if c.op == fault.Multi {
						return // the znode ends with the session, as the error says
					}
					zktest.Eventually(t, recipetest.Generous, "the end of the znode", func() bool { return left(t, observer, client, dir) == 0 })
					return
				}
				select { // a Close that waits for nothing is over by then
				case err := <-closed:
					closed <- err
				case <-time.After(10 * time.Millisecond):
				}
				held.Release()
				if err := must.Receive(t, closed, "the end of Close"); err != nil {
					t.Errorf("Close: %v", err)
				} else if n := left(t, observer, client, dir); n != 0 || client.PendingDeletes() != 0 {
					t.Errorf("Close has returned nil, %d znodes of the session exist, %d are to be deleted", n, client.PendingDeletes())
				}
			})
		}
	}
}

// left returns how many znodes of the client's session there are in the directory.
func left(t testing.TB, observer, c *framework.Client, dir string) (n int) {
	t.Helper()
	must.OK(t, observer.Sync(t.Context(), dir))
	names, _, err := observer.Children(t.Context(), dir)
	if errors.Is(err, framework.ErrNoNode) {
		return 0
	}
	must.OK(t, err)
	for _, name := range names {
		st, ok, err := observer.Exists(t.Context(), zkpath.Join(dir, name))
		must.OK(t, err)
		if ok && st.EphemeralOwner == c.Session().ID {
			n++
		}
	}
	return n
}
