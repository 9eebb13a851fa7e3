package node_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// TestCloseLeavesAnotherClientsZnode: during an outage another client takes the path. Close, during the
// outage or right after it, deletes the Node's own znode or none.
func TestCloseLeavesAnotherClientsZnode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		expired, early bool // the session ends in the outage; Close begins during it
	}{
		"the session outlives the outage":                  {},
		"the session outlives the outage, closed early":    {early: true},
		"the session ends during the outage":               {expired: true},
		"the session ends during the outage, closed early": {expired: true, early: true},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			route, other, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
			client := route.Client(t)
			n := kept(t, client, path, "ours")
			mustAwait(t, n)
			if c.expired {
				route.ExpireAndRefuse(t)
			} else {
				route.Refuse()
				route.Cut()
				must.OK(t, other.Delete(t.Context(), path))
			}
			zktest.Eventually(t, recipetest.Generous, "the outage", func() bool { return client.State() != framework.Connected })
			// The parent, a container without children, may be gone.
			must.Get(other.Create(t.Context(), path, []byte("theirs"), framework.Ephemeral(), framework.WithParents()))(t)
			closed := make(chan error, 1)
			closing := func() { closed <- n.Close(context.WithoutCancel(t.Context())) }
			if c.early {
				go closing()
				env.Quiesce()
			}
			route.Heal()
			if !c.early {
				closing()
			}
			if err := must.Receive(t, closed, "the end of Close"); err != nil && !errors.Is(err, framework.ErrSessionEnded) {
				t.Errorf("Close: %v", err)
			}
			env.Quiesce()
			mustHold(t, env.Client(t), other, path, "theirs")
		})
	}
}

// An outage begins behind the reply to the first exists after a sync, once it is armed, and ends when its
// user says so.
type outage struct{ armed, away atomic.Bool }

// A dialFunc connects a client to addr.
type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer returns a dialer of connections that the outage ends.
func (o *outage) dialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if o.away.Load() {
			return nil, errors.New("the network is away")
		}
		conn, err := dial(ctx, network, addr)
		return &severed{Conn: conn, outage: o}, err
	}
}

type severed struct {
	net.Conn
	outage        *outage
	synced, asked atomic.Bool
}

func (c *severed) Write(p []byte) (int, error) {
	if len(p) >= 12 && c.outage.armed.Load() {
		switch opcode := proto.Opcode(binary.BigEndian.Uint32(p[8:])); {
		case opcode == proto.OpSync:
			c.synced.Store(true)
		case opcode == proto.OpExists && c.synced.Load():
			c.asked.Store(true)
		}
	}
	return c.Conn.Write(p)
}

func (c *severed) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.asked.CompareAndSwap(true, false) {
		c.outage.armed.Store(false)
		c.outage.away.Store(true)
		_ = c.Conn.Close()
	}
	return n, err
}

// TestAFormerZnodeIsReplacedAtOnceOrNotAtAll: the connection ends as soon as the client has read the znode
// of its former session, which it is to replace. Another client has another znode at the path when the next
// connection comes. The replacement must not have waited for that connection.
func TestAFormerZnodeIsReplacedAtOnceOrNotAtAll(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		var o outage
		other, c := recipetest.ClientOf(t, srv), recipetest.Client(t, srv.Addr(), framework.WithDialer(o.dialer(srv.Dial)))
		for i := range 50 {
			path := fmt.Sprintf("/n%d", i)
			n := kept(t, c, path, "ours")
			mustAwait(t, n)
			o.armed.Store(true)
			srv.Rules().Add(fault.Rule{Op: fault.Connect, Session: c.Session().ID, Action: fault.OtherSession})
			srv.Cut()
			zktest.Eventually(t, recipetest.Generous, "the outage", o.away.Load)
			synctest.Wait()
			must.Get(other.Txn(t.Context(), framework.OpDelete(path, framework.AnyVersion),
				framework.OpCreate(path, []byte("theirs"), framework.Ephemeral())))(t)
			o.away.Store(false)
			recipetest.Fails(t, "Await", n.Await(recipetest.Patient(t)), node.ErrTaken)
			mustHold(t, other, other, path, "theirs")
			must.OK(t, n.Close(t.Context()))
		}
	})
}

// TestSetMeetsAnotherClientsZnode: another client has replaced the Node's znode, and the Node has not been
// notified. Both znodes have version 0, so the Set is applied, but the znode does not become the Node's.
func TestSetMeetsAnotherClientsZnode(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, other, path := env.Route(t), env.Client(t), recipetest.Path(t)+"/n"
		n := kept(t, route.Client(t), path, "ours")
		mustAwait(t, n)
		dropped := route.Rules().Add(fault.Rule{Op: fault.Event, Path: path, Action: fault.DropEvent, Times: fault.Forever})
		defer dropped.Remove()
		must.OK(t, other.Delete(t.Context(), path))
		must.Get(other.Create(t.Context(), path, []byte("theirs"), framework.Ephemeral()))(t)
		recipetest.Fails(t, "Set", n.Set(recipetest.Patient(t), []byte("ours again")), node.ErrTaken)
		must.OK(t, n.Close(t.Context()))
		mustHold(t, env.Client(t), other, path, "ours again")
	})
}

// TestCloseLooksForItsZnodeBehindACommit: the reply to the transaction that replaced the znode of a former session is
// lost. Close looks for the replacement, and not before a commit: a leader that was deposed and doesn't know it
// replies to a sync from its memory.
func TestCloseLooksForItsZnodeBehindACommit(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv)
		n := kept(t, c, "/n", "ours")
		mustAwait(t, n)
		lost := srv.Rules().Add(fault.Rule{Op: fault.Multi, Path: "/n", Action: fault.DropReply})
		srv.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
		srv.Cut()
		must.Receive(t, lost.Hit(), "the lost reply")
		commit := srv.Rules().Add(fault.Rule{Op: fault.Multi, Action: fault.HoldReply})
		looked := srv.Rules().Add(fault.Rule{Op: fault.Exists, Path: "/n", Action: fault.Pass})
		closed := make(chan error, 1)
		go func() { closed <- n.Close(t.Context()) }()
		must.Receive(t, commit.Hit(), "a transaction of Close")
		synctest.Wait()
		if n := looked.Hits(); n != 0 {
			t.Errorf("Close looked %d times before it knew of the commit", n)
		}
		commit.Release()
		must.OK(t, must.Receive(t, closed, "the end of Close"))
		if exists(t, c, "/n") {
			t.Error("the znode is left")
		}
	})
}
