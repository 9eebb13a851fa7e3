package zkserver_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// A carrier is a way to front end 0 on which the faults of rules are carried out.
type carrier struct {
	srv   *zkserver.Server
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	rules *fault.Rules
	end   func(c *client) // ends a connection at once
}

// carried runs a test with each carrier: a server, and a proxy before one. Both do the same.
func carried(t *testing.T, body func(t *testing.T, way carrier), opts ...zkserver.Option) {
	t.Helper()
	virtualSubtest(t, "zkserver", func(t *testing.T, srv *zkserver.Server) {
		body(t, carrier{srv, srv.Dial, srv.Rules(), func(c *client) { c.nc.Close() }})
	}, opts...)
	virtualSubtest(t, "zkproxy", func(t *testing.T, srv *zkserver.Server) {
		proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) {
			return srv.Dial(ctx, "tcp", srv.Frontend(0).Addr())
		})
		body(t, carrier{srv, proxy.Dial, proxy.Rules(), func(*client) { proxy.Cut() }})
	}, opts...)
}

// conn connects by the carrier. The connection ends with the test.
func (w carrier) conn(t testing.TB) net.Conn {
	t.Helper()
	nc := must.Get(w.dial(t.Context(), "tcp", w.srv.Frontend(0).Addr()))(t)
	t.Cleanup(func() { nc.Close() })
	return nc
}

// open opens a session by the carrier.
func (w carrier) open(t testing.TB) *client {
	t.Helper()
	return must.Get(handshake(w.conn(t), T, 0, 0, nil))(t)
}

// resume resumes c's session by the carrier.
func (w carrier) resume(t testing.TB, c *client) *client {
	t.Helper()
	return must.Get(handshake(w.conn(t), T, 0, c.session, c.password))(t)
}

// hits reports whether a rule has hit.
func hits(h *fault.Handle) bool {
	select {
	case <-h.Hit():
		return true
	default:
		return false
	}
}

// The outcome of a create, and the requests behind it, while a rule is in force and afterwards.
func TestFaultOfARequest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		action  fault.Action
		delay   time.Duration
		applied bool // once the rule has hit
		ends    bool // the connection
	}{
		{fault.CutBefore, 0, false, true},
		{fault.DropReply, 0, true, true},
		{fault.HoldRequest, 0, false, false},
		{fault.HoldReply, 0, true, false},
		{fault.DelayRequest, 3 * time.Second, false, false},
		{fault.DelayReply, 3 * time.Second, true, false},
	} {
		t.Run(tt.action.String(), func(t *testing.T) {
			t.Parallel()
			carried(t, func(t *testing.T, way carrier) {
				other, c := connect(t, way.srv), way.open(t)
				rule := fault.Rule{Session: c.session, Op: fault.Create, Path: "/x*", Action: tt.action, Delay: tt.delay}
				if tt.delay > 0 {
					rule.Times = 2 // what is delayed together comes together
				}
				h := way.rules.Add(rule)
				other.node(t, "/x-other", 0)
				c.node(t, "/y", 0)
				began := time.Now()
				c.send(exists, "/", false)
				c.send(create, "/x", []byte(nil), open(), 0)
				if !tt.ends {
					c.send(create, "/x-next", []byte(nil), open(), 0)
				}
				if tt.action != fault.CutBefore { // which may cost the answers before it
					c.succeeds(t)
				}
				<-h.Hit()
				synctest.Wait()
				if x, next := other.has(t, "/x"), other.has(t, "/x-next"); x != tt.applied || next != (tt.applied && !tt.ends) {
					t.Errorf("carried out: %v, and %v behind it; want %v for both", x, next, tt.applied)
				}
				if tt.ends {
					c.closed(t)
					got := way.resume(t, c).call(t, create, "/x", []byte(nil), open(), 0)
					if (got.err == 0) == tt.applied || h.Hits() != 1 {
						t.Errorf("the repeated create has code %d, %d hits; want it to go through", got.err, h.Hits())
					}
					return
				}
				want := tt.delay
				if want == 0 {
					want = T / 2
					c.silent(t, want)
					h.Release()
				}
				c.succeeds(t)
				c.succeeds(t)
				if got := time.Since(began); got != want {
					t.Errorf("the replies came after %v, want %v", got, want)
				}
				if !other.has(t, "/x") {
					t.Error("the create has not been carried out in the end")
				}
			})
		})
	}
}

func TestFaultsOfEvents(t *testing.T) {
	t.Parallel()
	carried(t, func(t *testing.T, way carrier) {
		c, w, last := connect(t, way.srv), way.open(t), way.open(t)
		for _, path := range []string{"/dropped", "/late", "/held", "/seen", "/cut"} {
			w.do(t, getChildren, "/", false)
			w.fails(t, errNoNode, exists, path, true)
		}
		last.fails(t, errNoNode, exists, "/last", true)
		rules := way.rules
		dropped := rules.Add(fault.Rule{Op: fault.Event, Path: "/dropped", Action: fault.DropEvent})
		rules.Add(fault.Rule{Op: fault.Event, Path: "/late", Action: fault.DelayReply, Delay: time.Second})
		held := rules.Add(fault.Rule{Op: fault.Event, Path: "/held", Action: fault.HoldReply})
		seen := rules.Add(fault.Rule{Op: fault.Event, Path: "/seen", Action: fault.Pass})
		rules.Add(fault.Rule{Op: fault.Event, Path: "/cut", Action: fault.CutBefore})
		rules.Add(fault.Rule{Op: fault.Event, Path: "/last", Action: fault.DropEvent})
		c.node(t, "/dropped", 0)
		w.silent(t, time.Second)
		if !hits(dropped) {
			t.Error("the rule has not hit")
		}
		w.do(t, ping)
		began := time.Now()
		c.node(t, "/late", 0)
		w.event(t, 1, "/late")
		if got := time.Since(began); got != time.Second {
			t.Errorf("the event came after %v, want 1s", got)
		}
		c.node(t, "/held", 0)
		w.send(getChildren, "/", false)
		w.silent(t, time.Second)
		held.Release()
		w.event(t, 1, "/held")
		w.succeeds(t)
		c.node(t, "/seen", 0)
		w.event(t, 1, "/seen")
		if !hits(seen) {
			t.Error("the rule that lets an event pass has not hit")
		}
		c.node(t, "/cut", 0)
		w.closed(t)
		c.node(t, "/last", 0)
		must.OK(t, way.srv.Expire(last.session))
		last.closed(t) // the end of the connection is no event
	})
}

// The outcome of a handshake while a rule is in force, and afterwards.
func TestFaultsOfTheHandshake(t *testing.T) {
	t.Parallel()
	const answer = 4 + connectLength
	for _, tt := range []struct {
		action      fault.Action
		least, most int  // bytes that come while the rule is in force
		whole       int  // bytes that come in all; 0: no more
		session     bool // begun while the rule is in force
	}{
		{fault.CutBefore, 0, 0, 0, false},
		{fault.DropReply, 0, 0, 0, true},
		{fault.HoldRequest, 0, 0, answer, false},
		{fault.HoldReply, 0, 0, answer, true},
		{fault.Garbage, 60, 200, 0, false},
		{fault.HalfAnswer, answer / 2, answer/2 + 2, answer, true},
		{fault.OtherSession, answer, answer, answer, true},
	} {
		t.Run(tt.action.String(), func(t *testing.T) {
			t.Parallel()
			carried(t, func(t *testing.T, way carrier) {
				h := way.rules.Add(fault.Rule{Op: fault.Connect, Action: tt.action})
				nc := way.conn(t)
				hello := proto.ConnectRequest{Timeout: 10_000, Password: make([]byte, proto.PasswordSize)}
				must.Get(nc.Write(hello.Frame()))(t)
				nc.SetReadDeadline(time.Now().Add(time.Second))
				got, err := io.ReadAll(nc)
				if len(got) < tt.least || len(got) > tt.most || !hits(h) {
					t.Errorf("got %d bytes %q, want %d to %d; hit: %v", len(got), got, tt.least, tt.most, hits(h))
				}
				ends := tt.action == fault.CutBefore || tt.action == fault.DropReply
				if stands := errors.Is(err, os.ErrDeadlineExceeded); stands == ends {
					t.Errorf("the connection stands: %v (%v), want %v", stands, err, !ends)
				}
				sessions := way.srv.Sessions()
				if (len(sessions) == 1) != tt.session {
					t.Fatalf("%d sessions, want one: %v", len(sessions), tt.session)
				}
				switch tt.action {
				case fault.OtherSession:
					if id := int64(binary.BigEndian.Uint64(got[12:])); id != fault.OtherID(sessions[0].ID) {
						t.Errorf("the answer names %#x, the session is %#x", id, sessions[0].ID)
					}
				case fault.Garbage:
					if !strings.HasPrefix(string(got), "HTTP/1.1 400 Bad Request\r\n") {
						t.Errorf("got %q, want what an HTTP server would say", got)
					}
				}
				if tt.whole == 0 {
					way.open(t)
					return
				}
				h.Release()
				nc.SetReadDeadline(time.Now().Add(time.Second))
				must.Get(io.ReadFull(nc, make([]byte, tt.whole-len(got))))(t)
				newClient(nc).do(t, exists, "/", false)
			})
		})
	}
	t.Run("of one session", func(t *testing.T) {
		t.Parallel()
		carried(t, func(t *testing.T, way carrier) {
			c := way.open(t)
			way.rules.Add(fault.Rule{Session: c.session, Op: fault.Connect, Action: fault.CutBefore})
			way.open(t)
			if again, err := handshake(way.conn(t), T, 0, c.session, c.password); err == nil {
				t.Errorf("resumed as %+v, want the connection cut", again)
			}
			way.resume(t, c)
		})
	})
}

func TestFaultIsGivenBackWhenItsConnectionEnds(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]fault.Action{"before the request": fault.HoldRequest, "before the reply": fault.HoldReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			carried(t, func(t *testing.T, way carrier) {
				c := way.open(t)
				held := way.rules.Add(fault.Rule{Op: fault.Delete, Action: hold})
				drop := way.rules.Add(fault.Rule{Op: fault.Create, Action: fault.DropReply})
				c.send(del, "/none", -1)
				c.send(create, "/a", []byte(nil), open(), 0)
				<-held.Hit()
				synctest.Wait()
				way.end(c)
				synctest.Wait()
				if hits(drop) {
					t.Error("the rule has hit a reply whose turn never came")
				}
				again := way.open(t)
				again.send(create, "/b", []byte(nil), open(), 0)
				again.closed(t)
				synctest.Wait()
				if got := drop.Hits(); got != 1 {
					t.Errorf("the rule has hit %d times, want once", got)
				}
			})
		})
	}
}

// Pings have one xid.
func TestFaultOfOneOfSeveralPings(t *testing.T) {
	t.Parallel()
	carried(t, func(t *testing.T, way carrier) {
		c := way.open(t)
		held := way.rules.Add(fault.Rule{Op: fault.Ping, Action: fault.HoldReply, Skip: 1})
		for range 3 {
			c.send(ping)
		}
		c.succeeds(t)
		<-held.Hit()
		c.silent(t, T/2)
		held.Release()
		c.succeeds(t)
		c.succeeds(t)
	})
}

func TestFaultsOfLargeFrames(t *testing.T) {
	t.Parallel()
	carried(t, func(t *testing.T, way carrier) {
		other, c := connect(t, way.srv), way.open(t)
		data := bytes.Repeat([]byte("0123456789abcdef"), 60_000)
		c.do(t, create, "/large", data, open(), 0)
		held := way.rules.Add(fault.Rule{Op: fault.GetData, Action: fault.HoldReply})
		c.send(getData, "/large", false)
		<-held.Hit()
		c.silent(t, T/2)
		held.Release()
		if got := must.Get(c.receive())(t).body; !bytes.Equal(got[4:4+len(data)], data) {
			t.Error("data has changed on the way")
		}
		lost := way.rules.Add(fault.Rule{Op: fault.SetData, Action: fault.DropReply})
		c.send(setData, "/large", data[1:], 0)
		<-lost.Hit()
		if got := other.do(t, getData, "/large", false); !bytes.Equal(got[4:4+len(data)-1], data[1:]) {
			t.Error("the write has not been carried out")
		}
		c.closed(t)
	})
}

// Rules see the paths of all operations of a transaction, whatever operations are before them.
func TestFaultOfATransactionByItsPaths(t *testing.T) {
	t.Parallel()
	carried(t, func(t *testing.T, way carrier) {
		rq := func(path string, more ...any) []byte {
			return body(append([]any{path, []byte("x"), open()}, more...)...)
		}
		transaction := []sub{
			{del, body("/delete", -1)}, {create, rq("/create", 0)}, {create2, rq("/create2", 0)},
			{createContainer, rq("/container", 4)}, {createTTL, rq("/ttl", 5, ttl(time.Hour))},
			{check, body("/check", 3)}, {setData, body("/set", []byte("data"), -1)},
		}
		for _, path := range []string{"/delete", "/create", "/create2", "/container", "/ttl", "/check", "/set"} {
			cut := way.rules.Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.CutBefore})
			c := way.open(t)
			c.send(multi, transaction)
			c.closed(t)
			<-cut.Hit()
		}
		cut := way.rules.Add(fault.Rule{Op: fault.MultiRead, Path: "/third", Action: fault.CutBefore})
		c := way.open(t)
		c.send(multiRead, []sub{{getData, body("/first", false)}, {getChildren, body("/second", false)}, {getData, body("/third", false)}})
		c.closed(t)
		<-cut.Hit()
	})
}

// A follower alone answers a request that it refuses: behind what came before, with its
// own zxid where a real server gives that, and the leader sees nothing of it.
func TestFaultRefuseIsAnsweredByTheFollowerAlone(t *testing.T) {
	t.Parallel()
	credential := []any{0, "digest", []byte("ann:pw")}
	node := []any{"/refused", make([]byte, 160_000), open(), 0} // more than a proxy reads at once
	for _, tt := range []struct {
		code   fault.Code
		op     int32
		fields []any
	}{
		{fault.Throttled, create, node},
		{fault.Throttled, getChildren, []any{"/", false}},
		{fault.NotReadOnly, create, node},
		{fault.NoAuth, create, node},
		{fault.InvalidACL, create, node},
		{fault.AuthFailed, auth, credential},
		{fault.AuthRequired, create, node},
		{fault.Unimplemented, create, node},
	} {
		t.Run(tt.code.String(), func(t *testing.T) {
			t.Parallel()
			carried(t, func(t *testing.T, way carrier) {
				other, c := connectTo(t, way.srv, 2), way.open(t)
				path, _ := tt.fields[0].(string)
				refused := way.rules.Add(fault.Rule{Op: fault.OpOf(tt.op), Path: path, Action: fault.Refuse, Code: tt.code})
				before, _ := c.send(create, "/before", []byte(nil), open(), 0)
				xid, _ := c.send(tt.op, tt.fields...)
				first, err := c.receive()
				if err != nil || first.xid != before || first.err != 0 {
					t.Fatalf("the answer before: %+v, %v", first, err)
				}
				got, err := c.receive()
				if want := tt.code.Zxid(first.zxid); err != nil || got.xid != xid || got.err != int32(tt.code) || got.zxid != want || len(got.body) != 0 {
					t.Errorf("got %+v, %v; want xid %d, error %d, zxid %d", got, err, xid, tt.code, want)
				}
				<-refused.Hit()
				if way.srv.Leader().Zxid() != first.zxid || other.has(t, "/refused") {
					t.Error("the leader has seen the request")
				}
				if tt.code.Closes() {
					c.closed(t)
				} else if got := c.call(t, tt.op, tt.fields...); got.err != 0 {
					t.Errorf("the next request: error %d", got.err)
				}
			}, zkserver.WithFrontends(3), zkserver.WithLeader(2), zkserver.WithCommitTime(time.Second))
		})
	}
}

// A member that has no contact with its leader refuses too.
func TestFaultRefuseNeedsNoLeader(t *testing.T) {
	t.Parallel()
	carried(t, func(t *testing.T, way carrier) {
		c := way.open(t)
		way.srv.Frontend(0).Isolate()
		way.rules.Add(fault.Rule{Action: fault.Refuse, Code: fault.Throttled, Times: 2})
		c.fails(t, -127, del, "/none", -1)
		c.fails(t, -127, multi, []sub{{check, body("/none", 0)}})
	}, zkserver.WithFrontends(3), zkserver.WithLeader(2))
}

func TestFault_of_a_request_that_is_not_carried_out(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		a, b := connect(t, srv), connect(t, srv)
		drop := srv.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.DropReply})
		srv.Freeze()
		a.send(create, "/a", []byte(nil), open(), 0)
		synctest.Wait()
		srv.Cut()
		srv.Thaw()
		synctest.Wait()
		again := resumeOn(t, srv, 0, b)
		if hits(drop) || again.has(t, "/a") {
			t.Error("a request was carried out on a connection that had been cut")
		}
		again.send(create, "/b", []byte(nil), open(), 0)
		<-drop.Hit()
	})
}
