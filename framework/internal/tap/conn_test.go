package tap_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/internal/must"
)

func TestHandshake_has_one_deadline(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer []byte // all that the server sends
	}{
		{"nothing is answered", nil},
		{"half of the length is answered", []byte{0, 0}},
		{"half of the answer is", append([]byte{0, 0, 0, 37}, greeting(7)[:20]...)},
	} {
		runSynctest(t, tc.name, func(t *testing.T) {
			client, server := net.Pipe()
			defer client.Close()
			defer server.Close()
			tp := newTap()
			conn := must.Get(tp.Wrap(client, time.Now().Add(time.Second)))(t)
			var err error
			go server.Write(tc.answer)
			start := time.Now()
			for { // as the wire client does: first with a deadline, then with none
				_ = conn.SetReadDeadline(time.Now().Add(time.Hour))
				_ = conn.SetReadDeadline(time.Time{})
				if _, err = conn.Read(make([]byte, 4)); err != nil {
					break
				}
			}
			var timedOut net.Error
			if took := time.Since(start); took != time.Second || !errors.As(err, &timedOut) || !timedOut.Timeout() {
				t.Errorf("after %v: %v", took, err)
			}
		})
	}
}

func TestHandshake_refuses_other_bytes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer []byte
	}{
		{"an HTTP server's answer", []byte("HTTP/1.1 400 Bad Request\r\n\r\n")},
		{"a TLS alert", []byte{21, 3, 3, 0, 2, 2, 70}},
		{"a negative length", []byte{0xff, 0xff, 0xff, 0xff}},
		{"too short an answer", []byte{0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8}},
		{"a password that is cut short", append([]byte{0, 0, 0, 20}, append(make([]byte, 16), 0, 0, 0, 99)...)},
		{"no password", framed(append(greeting(7)[:16], 0, 0, 0, 0))},
		{"a session timeout of 0", framed(granting(0))},
		{"a session timeout below 0", framed(granting(-1))},
		{"a session timeout just too short", framed(granting(tap.MinTimeout - time.Millisecond))},
		{"just over the limit", binary.BigEndian.AppendUint32(nil, tap.MaxHandshake+1)},
	} {
		runSynctest(t, tc.name, func(t *testing.T) {
			p := dialled(t)
			p.send(make([]byte, 44))
			go p.server.Write(tc.answer)
			_, err := io.ReadAll(p.client)
			if !errors.Is(err, tap.ErrHandshake) || strings.HasPrefix(tc.name, "an HTTP") != strings.Contains(err.Error(), "HTTP") {
				t.Errorf("%v, want that it is no handshake, and whose it is", err)
			}
			wantErr(t, "the fault", p.tap.Fault(), tap.ErrHandshake)
			if id, _, _ := p.tap.Session(); id != 0 {
				t.Errorf("session %d", id)
			}
			wantErr(t, "the server's read", last(p.server.Read(make([]byte, 1))), io.EOF)
		})
	}
}

// granting is a greeting with a session timeout.
func granting(timeout time.Duration) []byte {
	b := greeting(7)
	binary.BigEndian.PutUint32(b[4:], uint32(timeout/time.Millisecond))
	return b
}

func TestAHandshakeGetsTheFieldThatNewServersExpect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := dialled(t)
		body := bytes.Repeat([]byte{1}, 44)
		if got := p.send(body); !bytes.Equal(got, append(bytes.Clone(body), 0)) {
			t.Errorf("%x was sent for %x", got, body)
		}
		p.reply(greeting(7))
		if id, password, T := p.tap.Session(); id != 7 || len(password) != 16 || T != timeout {
			t.Errorf("session %d, %d bytes of password, %v", id, len(password), T)
		}
	})
}

func TestAnExpiredOrAnotherSessionEndsTheTap(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer int64
		want   error
	}{{"expired", 0, tap.ErrExpired}, {"another", 8, tap.ErrSubstituted}} {
		runSynctest(t, tc.name, func(t *testing.T) {
			p := newPeer(t)
			p.dial()
			p.send(make([]byte, 44))
			answer := greeting(tc.answer)
			go p.server.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...))
			_, _ = io.ReadAtLeast(p.client, make([]byte, 64), 41) // what it returns is the wire client's
			if err := p.tap.Ended(); !errors.Is(err, tc.want) {
				t.Errorf("ended by %v, want %v", err, tc.want)
			}
			a, b := net.Pipe()
			defer b.Close()
			wantErr(t, "a connection more", last(p.tap.Wrap(a, time.Now().Add(time.Second))), tc.want)
		})
	}
}

// A server answers credentials ahead of the requests before them.
func TestCredentialsAreAnsweredOutOfTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		first := p.request(opSetData)
		auth := p.request(opAuth)
		p.respond(auth, 0)
		p.respond(first, 0)
		wantErr(t, "refusal", p.tap.Refusal(), nil)
		wantAllAnswered(t, p.tap)
		p.respond(p.request(opAuth), codeRefused)
		if refusal := p.tap.Refusal(); !errors.Is(refusal, tap.ErrTrial) {
			t.Errorf("refusal %v, want ErrTrial", refusal)
		}
		p.reconnect()
		wantErr(t, "on a new connection", p.tap.Refusal(), nil)
	})
}
