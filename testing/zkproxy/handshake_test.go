package zkproxy_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// greet adds a rule on the next handshake and sends one.
func greet(t *testing.T, action fault.Action) (*zkproxy.Proxy, *peer, *fault.Handle) {
	t.Helper()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	h := proxy.Rules().Add(fault.Rule{Op: fault.Connect, Action: action})
	p := dial(t, proxy.Addr())
	p.sendHandshake()
	return proxy, p, h
}

func TestHandshakeCut(t *testing.T) {
	t.Parallel()
	for _, action := range []fault.Action{fault.CutBefore, fault.DropReply} {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			proxy, p, h := greet(t, action)
			p.wantEnd()
			wantHit(t, h.Hit())
			connect(t, proxy.Addr())
		})
	}
}

func TestHandshakeHeld(t *testing.T) {
	t.Parallel()
	for _, action := range []fault.Action{fault.HoldRequest, fault.HoldReply} {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			proxy, p, h := greet(t, action)
			wantHit(t, h.Hit())
			p.wantSilence()
			if got, want := len(proxy.Sessions()) > 0, action == fault.HoldReply; got != want {
				t.Errorf("the server has answered: %v; want %v", got, want)
			}
			h.Release()
			p.receiveHandshake()
			p.exists("/")
		})
	}
}

func TestHandshakeGarbage(t *testing.T) {
	t.Parallel()
	proxy, p, h := greet(t, fault.Garbage)
	wantHit(t, h.Hit())
	want := []byte("HTTP/1.1 400 Bad Request\r\n")
	got := make([]byte, len(want))
	if _, err := io.ReadFull(p.conn, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("received %q, %v; want %q", got, err, want)
	}
	if _, err := p.conn.Read(make([]byte, 1024)); err != nil {
		t.Errorf("the rest of the answer: %v", err)
	}
	p.wantSilence()
	if len(proxy.Sessions()) != 0 {
		t.Error("the handshake has reached the server")
	}
}

func TestHandshakeHalfAnswer(t *testing.T) {
	t.Parallel()
	_, p, h := greet(t, fault.HalfAnswer)
	wantHit(t, h.Hit())
	const whole = 4 + 37 // the length, and the answer of a server of today
	got := make([]byte, whole)
	_ = p.conn.SetReadDeadline(time.Now().Add(quiet))
	n, err := io.ReadFull(p.conn, got)
	if want := 4 + 37/2; n != want {
		t.Errorf("received %d bytes, %v; want %d", n, err, want)
	}
	h.Release()
	_ = p.conn.SetReadDeadline(time.Now().Add(soon))
	if rest, err := io.ReadFull(p.conn, got[n:]); n+rest != whole {
		t.Errorf("received %d more bytes, %v; want %d", rest, err, whole-n)
	}
	p.exists("/")
}

func TestHandshakeOtherSession(t *testing.T) {
	t.Parallel()
	proxy, p, h := greet(t, fault.OtherSession)
	p.receiveHandshake()
	wantHit(t, h.Hit())
	sessions := proxy.Sessions()
	if len(sessions) != 1 || p.id != fault.OtherID(sessions[0].ID) {
		t.Errorf("the client was told %d, the server knows %v; want one more", p.id, sessions)
	}
	p.exists("/")
}

func TestHandshakeOfASession(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cut := s.proxy.Rules().Add(fault.Rule{Session: s.client.id, Op: fault.Connect, Action: fault.CutBefore})
	connect(t, s.proxy.Addr())
	wantNoHit(t, cut.Hit())
	again := dial(t, s.proxy.Addr())
	again.id, again.password = s.client.id, s.client.password
	again.sendHandshake()
	again.wantEnd()
	wantHit(t, cut.Hit())
}

func TestSessions(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	sessions := s.proxy.Sessions()
	if len(sessions) != 1 {
		t.Fatalf("sessions %v; want one", sessions)
	}
	got := sessions[0]
	if got.ID != s.client.id || !bytes.Equal(got.Password, s.client.password) || got.Timeout != session {
		t.Errorf("session %v; want id %d, timeout %v and the client's password", got, s.client.id, session)
	}
	if err := zktest.KillSession(t.Context(), zktest.Shared(t).Addr(), got.ID, got.Password); err != nil {
		t.Errorf("ending the session: %v", err)
	}
	s.client.wantEnd()
	zktest.Eventually(t, soon, "the session is gone from the list", func() bool { return len(s.proxy.Sessions()) == 0 })
}
