package zkproxy_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// The outcome of a handshake while a rule is in force, and afterwards.
func TestFaultOfAHandshake(t *testing.T) {
	t.Parallel()
	const answer = 4 + 37 // the length, and the answer of a server of today
	const garbage = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request"
	for _, tt := range []struct {
		action   fault.Action
		begun    int  // bytes that come while the rule is in force
		whole    int  // bytes that come in all
		ends     bool // the connection
		sessions int  // of connections that stand, while the rule is in force
	}{
		{fault.CutBefore, 0, 0, true, 0},
		{fault.DropReply, 0, 0, true, 0},
		{fault.HoldRequest, 0, answer, false, 0},
		{fault.HoldReply, 0, answer, false, 1},
		{fault.Garbage, len(garbage), len(garbage), false, 0},
		{fault.HalfAnswer, 4 + 37/2, answer, false, 1},
		{fault.OtherSession, answer, answer, false, 1},
	} {
		t.Run(tt.action.String(), func(t *testing.T) {
			t.Parallel()
			proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
			h := proxy.Rules().Add(fault.Rule{Op: fault.Connect, Action: tt.action})
			p := dial(t, proxy.Addr())
			p.sendHandshake()
			wantHit(t, h.Hit())
			_ = p.conn.SetReadDeadline(time.Now().Add(quiet))
			got, err := io.ReadAll(p.conn)
			if ends := !errors.Is(err, os.ErrDeadlineExceeded); len(got) != tt.begun || ends != tt.ends {
				t.Fatalf("received %d bytes, %v; want %d, and an end: %v", len(got), err, tt.begun, tt.ends)
			}
			sessions := proxy.Sessions()
			if !tt.ends && len(sessions) != tt.sessions {
				t.Errorf("sessions %v; want %d", sessions, tt.sessions)
			}
			h.Release()
			rest := make([]byte, tt.whole-tt.begun)
			_ = p.conn.SetReadDeadline(time.Now().Add(soon))
			must.Get(io.ReadFull(p.conn, rest))(t)
			switch whole := append(got, rest...); {
			case tt.ends:
				connect(t, proxy.Addr())
			case tt.action == fault.Garbage:
				if string(whole) != garbage {
					t.Errorf("received %q; want %q", whole, garbage)
				}
			default:
				d := proto.NewDecoder(whole[proto.LengthSize:])
				if id := d.ConnectReply().Session; tt.action == fault.OtherSession && id != fault.OtherID(sessions[0].ID) {
					t.Errorf("the client was told %d, the server knows %v; want another", id, sessions)
				}
				p.exists("/")
			}
		})
	}
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
