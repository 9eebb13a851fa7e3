package node_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// inVirtualTime runs the test with a server, a client behind a proxy, and another client.
func inVirtualTime(t *testing.T, test func(t *testing.T, proxy *zkproxy.Proxy, c, other *framework.Client), opts ...framework.Option) {
	t.Helper()
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) { return srv.Dial(ctx, "tcp", srv.Addr()) })
		c := recipetest.Client(t, proxy.Addr(), append(opts, framework.WithDialer(proxy.Dial))...)
		test(t, proxy, c, recipetest.ClientOf(t, srv))
	})
}

// The reply to the create is lost. Before the client is connected again, another client writes to the znode,
// which is the Node's nevertheless.
func TestTheNodesOwnZnodeWasWrittenBeforeItIsFound(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, proxy *zkproxy.Proxy, c, other *framework.Client) {
		lost := proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: "/n", Action: fault.DropReply})
		n := must.Get(node.New(c, "/n", []byte("ours")))(t)
		<-lost.Hit()
		writtenBeforeItIsFound(t, proxy, other, n, true)
	})
}

// A Node replaces the znode of its former session by one transaction, whose reply is lost. Before the client is
// connected again, another client writes to the znode, which is the Node's nevertheless.
func TestTheNodesSuccessorWasWrittenBeforeItIsFound(t *testing.T) {
	for name, found := range map[string]bool{"found": true, "closed before": false} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, proxy *zkproxy.Proxy, c, other *framework.Client) {
				n := must.Get(node.New(c, "/n", []byte("ours")))(t)
				mustAwait(t, n)
				loseTheReplacement(proxy, c)
				writtenBeforeItIsFound(t, proxy, other, n, found)
			})
		})
	}
}

// loseTheReplacement ends the client's session and loses the reply to the transaction that replaces its znode.
func loseTheReplacement(proxy *zkproxy.Proxy, c *framework.Client) {
	lost := proxy.Rules().Add(fault.Rule{Op: fault.Multi, Path: "/n", Action: fault.DropReply})
	proxy.Rules().Add(fault.Rule{Op: fault.Connect, Session: c.Session().ID, Action: fault.OtherSession})
	proxy.Cut()
	<-lost.Hit()
}

// writtenBeforeItIsFound has another client write to the Node's znode before the Node is connected again. The Node
// reports that if it finds the znode, and deletes the znode by Close in any case.
func writtenBeforeItIsFound(t *testing.T, proxy *zkproxy.Proxy, other *framework.Client, n *node.Node, found bool) {
	t.Helper()
	proxy.Refuse()
	synctest.Wait()
	seen := follow(t, n)
	for range 2 {
		must.Get(other.Set(t.Context(), "/n", []byte("theirs"), framework.AnyVersion))(t)
	}
	if found {
		proxy.Heal()
		mustAwait(t, n)
		if synctest.Wait(); strings.Count(seen.kinds(), "Overwritten") != 1 {
			t.Errorf("changes %q, want one report that it was overwritten", seen.kinds())
		}
	} else {
		time.AfterFunc(time.Second, proxy.Heal)
	}
	must.OK(t, n.Close(t.Context()))
	if exists(t, other, "/n") {
		t.Error("the znode has outlived Close")
	}
}

// A Node has found that it replaced the znode of its former session, although the reply was lost. Later its client
// itself replaces the znode by a transaction like that. Such a znode is not the Node's, and outlives Close.
func TestWhatTheClientPutsInTheSuccessorsPlaceIsNotTheNodes(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, proxy *zkproxy.Proxy, c, other *framework.Client) {
		n := must.Get(node.New(c, "/n", []byte("ours")))(t)
		mustAwait(t, n)
		loseTheReplacement(proxy, c)
		synctest.Wait()
		<-time.After(time.Second)
		mustAwait(t, n)
		must.Get(c.Txn(t.Context(), framework.OpDelete("/n", framework.AnyVersion),
			framework.OpCreate("/n", nil, framework.Ephemeral()), framework.OpSet("/n", []byte("by hand"), 0)))(t)
		<-time.After(time.Minute)
		recipetest.Fails(t, "Await", n.Await(t.Context()), node.ErrTaken)
		must.OK(t, n.Close(t.Context()))
		mustHold(t, other, c, "/n", "by hand")
	})
}

// The reply to the create is lost, and the client's policy ends before the client is connected again. The
// Node is open all the while, so no client deletes its znode: the client finds it.
func TestAnOpenNodesZnodeIsNotDeletedAndMadeAgain(t *testing.T) {
	for name, opts := range map[string][]node.Option{"plain": nil, "sequential": {node.Sequential()}} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, proxy *zkproxy.Proxy, c, other *framework.Client) {
				must.Get(other.Create(t.Context(), "/d", nil))(t)
				lost := proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: "/d/*", Action: fault.DropReply})
				n := must.Get(node.New(c, "/d/n", []byte("ours"), opts...))(t)
				<-lost.Hit()
				proxy.Refuse()
				<-time.After(time.Second)
				names, before := must.Get2(other.Children(t.Context(), "/d"))(t)
				proxy.Heal()
				mustAwait(t, n)
				if after, st := must.Get2(other.Children(t.Context(), "/d"))(t); !slices.Equal(after, names) || st.Cversion != before.Cversion {
					t.Errorf("znodes %q after %d changes, want %q after %d", after, st.Cversion, names, before.Cversion)
				}
				must.OK(t, n.Close(t.Context()))
			}, framework.WithRetry(retry.Never()))
		})
	}
}

// The Node's create was refused because of another client's znode, and the reply was late. By then the client
// itself has made a znode at the path, with the same data. Close deletes the Node's znode, not that one.
func TestCloseLeavesWhatTheClientMadeByHand(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, proxy *zkproxy.Proxy, c, other *framework.Client) {
		must.Get(c.Create(t.Context(), "/y", nil))(t) // the next creates are on their way at the same time
		must.Get(other.Create(t.Context(), "/n", []byte("theirs")))(t)
		held := proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: "/n", Action: fault.HoldReply})
		n := must.Get(node.New(c, "/n", []byte("ours")))(t)
		<-held.Hit()
		must.OK(t, other.Delete(t.Context(), "/n"))
		made := make(chan error, 1)
		go func() {
			_, err := c.Create(t.Context(), "/n", []byte("ours"), framework.Ephemeral())
			made <- err
		}()
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- n.Close(t.Context()) }()
		synctest.Wait()
		held.Release()
		must.OK(t, <-made)
		must.OK(t, <-closed)
		<-time.After(time.Minute)
		mustHold(t, other, c, "/n", "ours")
	})
}
