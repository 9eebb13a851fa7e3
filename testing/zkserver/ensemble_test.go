package zkserver_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// An ensemble is one of three servers, embedded or real, that scenes are played on.
type ensemble interface {
	dial(member int) (net.Conn, error)
	leader(t testing.TB) int
	isolate(t testing.TB, member int)
	heal(t testing.TB, member int)
	// elect has all but one member elect a leader at once, and returns when they serve.
	elect(t testing.TB, without int) error
}

// Both ensembles have a sync limit that leaves time for real servers to restart.
const (
	members   = 3
	ticks     = zktest.DefaultTickTime
	syncTicks = 50
	endPath   = "/end" // where sequence numbers begin two before their end
	endNumber = 1<<31 - 2
)

// runEmbedded starts an embedded ensemble.
func runEmbedded(t testing.TB, opts ...zkserver.Option) ensemble {
	t.Helper()
	srv := zkserver.Run(t, append([]zkserver.Option{
		zkserver.WithFrontends(members), zkserver.WithLeader(members - 1), zkserver.WithTick(ticks), zkserver.WithSyncLimit(syncTicks),
		zkserver.WithSessionTimeouts(zktest.DefaultMinSessionTimeout, time.Minute),
		zkserver.WithReapInterval(zktest.DefaultContainerInterval),
	}, opts...)...)
	c := connect(t, srv)
	c.node(t, endPath, 0)
	c.do(t, del, c.node(t, endPath+"/counted", 0), -1)
	c.do(t, closeSession)
	must.OK(t, srv.SetNextSequence(endPath, endNumber))
	return embedded{srv}
}

type embedded struct{ srv *zkserver.Server }

func (e embedded) dial(i int) (net.Conn, error) {
	return e.srv.Dial(context.Background(), "tcp", e.srv.Frontend(i).Addr())
}

func (e embedded) leader(testing.TB) int {
	return slices.Index(e.srv.Frontends(), e.srv.Leader())
}

func (e embedded) isolate(_ testing.TB, i int) { e.srv.Frontend(i).Isolate() }

func (e embedded) heal(_ testing.TB, i int) { e.srv.Frontend(i).Heal() }

func (e embedded) elect(testing.TB, int) error { e.srv.Elect(); return nil }

// runReal starts a real ensemble.
func runReal(t testing.TB) ensemble {
	t.Helper()
	return real{zktest.RunEnsemble(t, members, zktest.WithSyncLimit(syncTicks), zktest.WithSequence(endPath, endNumber))}
}

type real struct{ *zktest.Ensemble }

func (e real) dial(i int) (net.Conn, error) { return net.Dial("tcp", e.Servers[i].Addr()) }

func (e real) leader(t testing.TB) int {
	t.Helper()
	s := must.Get(e.Leader(t.Context()))(t)
	return slices.Index(e.Servers, s)
}

func (e real) isolate(t testing.TB, i int) {
	t.Helper()
	must.OK(t, e.Isolate(e.Servers[i]))
}

func (e real) heal(t testing.TB, i int) {
	t.Helper()
	must.OK(t, e.Heal(e.Servers[i]))
}

// elect restarts the others.
func (e real) elect(t testing.TB, without int) error {
	t.Helper()
	errs := make([]error, members)
	var all sync.WaitGroup
	for i, s := range e.Servers {
		if i != without {
			all.Go(func() { errs[i] = s.Restart(t.Context()) })
		}
	}
	all.Wait()
	return errs[(without+1)%members]
}

// dialAt connects to a member. The connection ends with the test.
func dialAt(t testing.TB, e ensemble, member int) net.Conn {
	t.Helper()
	nc := must.Get(e.dial(member))(t)
	t.Cleanup(func() { nc.Close() })
	return nc
}

// openAt opens a session at a member, or resumes one.
func openAt(t testing.TB, e ensemble, member int, timeout time.Duration, resumed *client) *client {
	t.Helper()
	nc := dialAt(t, e, member)
	session, password := int64(0), []byte(nil)
	if resumed != nil {
		session, password = resumed.session, resumed.password
	}
	must.OK(t, nc.SetDeadline(time.Now().Add(3*time.Minute)))
	c := must.Get(handshake(nc, timeout, 0, session, password))(t)
	if resumed != nil && c.session != 0 && !c.serves(t) {
		return openAt(t, e, member, timeout, resumed)
	}
	return c
}

// serves reports whether the member serves a session that has moved to it. A real leader
// answers the handshake before it takes the session over: it closes the connection if a
// request comes between the two.
func (c *client) serves(t testing.TB) bool {
	t.Helper()
	xid, err := c.send(syncOp, "/")
	if err != nil {
		return false
	}
	got, err := c.receive()
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() || err == nil && (got.xid != xid || got.err != 0) {
		t.Fatalf("sync after a move: %+v, %v", got, err)
	}
	return err == nil
}
