package framework_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// An oldServer dials so that the server takes requests with some opcodes for ones
// that it does not know, and counts them.
type oldServer struct {
	dial    dialFunc
	unknown []uint32
	renewed atomic.Bool // it knows them now
	asked   atomic.Int32
}

func (o *oldServer) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := o.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &oldConn{conn, o}, nil
}

type oldConn struct {
	net.Conn
	server *oldServer
}

func (c *oldConn) Write(p []byte) (int, error) {
	p = slices.Clone(p)
	for _, request := range requestsOf(p) {
		if slices.Contains(c.server.unknown, binary.BigEndian.Uint32(request[8:])) && !c.server.renewed.Load() {
			c.server.asked.Add(1)
			binary.BigEndian.PutUint32(request[8:], 999)
		}
	}
	return c.Conn.Write(p)
}

// requestsOf returns the requests in p, each with its length: the client writes whole frames.
func requestsOf(p []byte) (requests [][]byte) {
	for len(p) >= 12 {
		n := min(len(p), 4+int(binary.BigEndian.Uint32(p)))
		requests, p = append(requests, p[:n]), p[n:]
	}
	return requests
}

func TestWhoAmI(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr(), framework.WithAuth("digest", []byte(user+":"+secret)))
	ids := must.Get(c.WhoAmI(t.Context()))(t)
	for _, want := range []framework.Identity{{Scheme: "ip", ID: "127.0.0.1"}, {Scheme: "digest", ID: user}} {
		if !slices.Contains(ids, want) {
			t.Errorf("identities %v, want %v among them", ids, want)
		}
	}
}

func TestEphemerals(t *testing.T) {
	t.Parallel()
	root := fresh(t)
	c := connect(t, zktest.Shared(t).Addr()+root)
	other := connect(t, zktest.Shared(t).Addr()+root)
	mustCreate(t, c, "/a", "", framework.Container())
	for _, path := range []string{"/a/1", "/a/2", "/ab"} {
		mustCreate(t, c, path, "", framework.Ephemeral())
	}
	mustCreate(t, c, "/a/lasting", "")
	mustCreate(t, other, "/a/others", "", framework.Ephemeral())
	for path, want := range map[string][]string{
		"/":     {"/a/1", "/a/2", "/ab"},
		"/a":    {"/a/1", "/a/2"},
		"/a/1":  {"/a/1"},
		"/none": {},
	} {
		got, err := c.Ephemerals(t.Context(), path)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("below %s: %v, %v, want %v", path, got, err, want)
		}
	}
}

func TestReady_asks_a_quorum(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		before := srv.Frontend(0).Zxid()
		must.OK(t, c.Ready(t.Context()))
		wantEqual(t, "transactions", srv.Frontend(0).Zxid()-before, 1)
		srv.Frontend(0).Isolate() // it goes on to answer reads
		ctx := within(t, time.Second)
		wantErr(t, "a read", last(c.Children(ctx, "/")), nil)
		wantErr(t, "cut off from the quorum", c.Ready(ctx), context.DeadlineExceeded, framework.ErrUnknownOutcome)
		srv.Frontend(0).Heal()
		wantErr(t, "healed", c.Ready(t.Context()), nil)
	})
}

func TestReady_does_not_wait_for_a_connection(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		disconnect(srv)
		synctest.Wait()
		start := time.Now()
		err := c.Ready(t.Context())
		wantErr(t, "without a connection", err, framework.ErrNotConnected)
		wantEqual(t, "time that it took", time.Since(start), 0)
		if err != nil && !strings.Contains(err.Error(), "Suspended") {
			t.Errorf("%v: no word of the state", err)
		}
		srv.Accept()
		must.OK(t, c.AwaitConnected(t.Context()))
		check(t, c.Ready(t.Context()))
		c.Close()
		wantErr(t, "closed", c.Ready(t.Context()), framework.ErrClosed)
	})
}

// Close ends a request that no server answers.
func TestClose_ends_questions(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		srv.Freeze()
		asked := background(func() error { return last(c.WhoAmI(t.Context())) })
		synctest.Wait()
		c.Close()
		wantErr(t, "the error", <-asked, framework.ErrClosed)
		srv.Thaw()
	})
}

// A late context ends when its Done is asked for, once ready returns true and all is quiet.
type late struct {
	context.Context
	ready func() bool
	end   context.CancelFunc
}

func (l late) Done() <-chan struct{} {
	synctest.Wait()
	if l.ready() {
		l.end()
	}
	return l.Context.Done()
}

// The context of a GetEach ends just when its replies have come: they say more.
func TestGetEach_whose_context_ends_with_the_replies(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		mustCreate(t, c, "/a", "data")
		must.Get2(c.Get(t.Context(), "/a"))(t) // shows how long data are
		asked := srv.Rules().Add(fault.Rule{Op: fault.MultiRead, Action: fault.Pass, Times: fault.Forever})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		reads, faults := c.GetEach(late{ctx, func() bool { return asked.Hits() == 1 }, cancel}, "/a", "/none")
		if ctx.Err() == nil {
			t.Fatal("the context has not ended: the test shows nothing")
		}
		if faults[0] != nil || string(reads[0].Data) != "data" || !errors.Is(faults[1], framework.ErrNoNode) {
			t.Errorf("%q, errors %v; want the data, and ErrNoNode of the other", reads[0].Data, faults)
		}
	})
}
