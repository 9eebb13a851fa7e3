package zkserver_test

import (
	"encoding/binary"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// hits reports whether a rule has hit.
func hits(h *fault.Handle) bool {
	select {
	case <-h.Hit():
		return true
	default:
		return false
	}
}

// The outcome of a create, and the request behind it, while a rule is in force and afterwards.
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
		virtualSubtest(t, tt.action.String(), func(t *testing.T, srv *zkserver.Server) {
			other, c := connect(t, srv), connect(t, srv)
			h := srv.Rules().Add(fault.Rule{Session: c.session, Op: fault.Create, Path: "/x*", Action: tt.action, Delay: tt.delay})
			other.node(t, "/x-other", 0)
			c.node(t, "/y", 0)
			began := time.Now()
			c.send(exists, "/", false)
			c.send(create, "/x", []byte(nil), open(), 0)
			if !tt.ends {
				c.send(create, "/z", []byte(nil), open(), 0)
			}
			if tt.action != fault.CutBefore { // which may cost the answers before it
				c.succeeds(t)
			}
			<-h.Hit()
			synctest.Wait()
			if x, z := other.has(t, "/x"), other.has(t, "/z"); x != tt.applied || z != (tt.applied && !tt.ends) {
				t.Errorf("carried out: %v, and %v behind it; want %v for both", x, z, tt.applied)
			}
			if tt.ends {
				c.closed(t)
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
		})
	}
}

func TestFaultsOfEvents(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, w := connect(t, srv), connect(t, srv)
		for _, path := range []string{"/dropped", "/late", "/held", "/cut"} {
			w.do(t, getChildren, "/", false)
			w.fails(t, errNoNode, exists, path, true)
		}
		rules := srv.Rules()
		dropped := rules.Add(fault.Rule{Op: fault.Event, Path: "/dropped", Action: fault.DropEvent})
		rules.Add(fault.Rule{Op: fault.Event, Path: "/late", Action: fault.DelayReply, Delay: time.Second})
		held := rules.Add(fault.Rule{Op: fault.Event, Path: "/held", Action: fault.HoldReply})
		rules.Add(fault.Rule{Op: fault.Event, Path: "/cut", Action: fault.CutBefore})
		c.node(t, "/dropped", 0)
		w.silent(t, time.Second)
		if !hits(dropped) {
			t.Error("the rule has not hit")
		}
		began := time.Now()
		c.node(t, "/late", 0)
		w.event(t, 1, "/late")
		if got := time.Since(began); got != time.Second {
			t.Errorf("the event came after %v, want 1s", got)
		}
		c.node(t, "/held", 0)
		w.silent(t, time.Second)
		held.Release()
		w.event(t, 1, "/held")
		c.node(t, "/cut", 0)
		w.closed(t)
	})
}

func TestFaultsOfTheHandshake(t *testing.T) {
	t.Parallel()
	connectFrame := body(45, 0, int64(0), 10_000, int64(0), make([]byte, 16), false)
	tests := []struct {
		name   string
		action fault.Action
		want   int // bytes that come while the rule is in force
	}{
		{"garbage comes instead", fault.Garbage, len("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")},
		{"half an answer comes", fault.HalfAnswer, 20},
		{"the answer names another session", fault.OtherSession, 41},
		{"no answer comes but the session is there", fault.HoldReply, 0},
		{"the connection is cut and the session is there", fault.DropReply, 0},
		{"the connection is cut", fault.CutBefore, 0},
	}
	for _, tt := range tests {
		virtualSubtest(t, tt.name, func(t *testing.T, srv *zkserver.Server) {
			h := srv.Rules().Add(fault.Rule{Op: fault.Connect, Action: tt.action})
			nc := dial(t, srv, "")
			must.Get(nc.Write(connectFrame))(t)
			nc.SetReadDeadline(time.Now().Add(time.Second))
			got, _ := io.ReadAll(nc)
			if len(got) != tt.want || !hits(h) {
				t.Errorf("got %d bytes %q, want %d; hit: %v", len(got), got, tt.want, hits(h))
			}
			reached := tt.action != fault.Garbage && tt.action != fault.CutBefore
			sessions := srv.Sessions()
			if (len(sessions) == 1) != reached {
				t.Fatalf("%d sessions, want one: %v", len(sessions), reached)
			}
			if tt.action == fault.OtherSession {
				if id := int64(binary.BigEndian.Uint64(got[12:])); id != fault.OtherID(sessions[0].ID) {
					t.Errorf("the answer names %#x, the session is %#x", id, sessions[0].ID)
				}
			}
			if tt.action == fault.HalfAnswer {
				h.Release()
				nc.SetReadDeadline(time.Now().Add(time.Second))
				if rest, _ := io.ReadAll(nc); len(rest) != 21 {
					t.Errorf("%d further bytes after the release, want 21", len(rest))
				}
			}
		})
	}
}

func TestFaultIsGivenBackWhenItsConnectionEnds(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		a, b := connect(t, srv), connect(t, srv)
		held := srv.Rules().Add(fault.Rule{Session: a.session, Op: fault.Delete, Action: fault.HoldRequest})
		drop := srv.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.DropReply})
		a.send(del, "/none", -1)
		a.send(create, "/a", []byte(nil), open(), 0)
		<-held.Hit()
		synctest.Wait()
		a.nc.Close()
		synctest.Wait()
		b.send(create, "/b", []byte(nil), open(), 0)
		b.closed(t)
		synctest.Wait()
		if got := drop.Hits(); got != 1 {
			t.Errorf("the rule has hit %d times, want once", got)
		}
	})
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
