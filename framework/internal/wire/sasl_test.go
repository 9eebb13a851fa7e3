package wire_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
)

// A mechanism says what it is given to say, and keeps its challenges.
type mechanism struct {
	steps      []step
	challenges []string
}

type step struct {
	response []byte
	done     bool
	err      error
}

func (m *mechanism) Next(challenge []byte) ([]byte, bool, error) {
	m.challenges = append(m.challenges, string(challenge))
	next := m.steps[min(len(m.challenges), len(m.steps))-1]
	return next.response, next.done, next.err
}

// A token is what a server answers to a token: a code, and a token or null.
type token struct {
	code proto.Code
	body []byte
}

// answerTokens answers requests of SASL, and returns what they held.
func answerTokens(conn net.Conn, answers []token) (held []string) {
	for _, a := range answers {
		request, err := nextFrame(conn)
		if err != nil || proto.Opcode(xidOf(request[4:])) != proto.OpSASL {
			return held
		}
		held = append(held, string(request[12:]))
		e := proto.NewEncoder()
		e.Bytes(a.body)
		_, _ = conn.Write(framed(replyOf(xidOf(request), 0, a.code, e.Body()))) // an error is the client's
	}
	return held
}

func TestSASL_comes_before_the_handshakes_answer(t *testing.T) {
	broken := errors.New("no proof")
	for name, tc := range map[string]struct {
		steps      []step
		answers    []token
		challenges []string
		refused    bool
		other      error
	}{
		"the server has the last word": {
			steps:   []step{{[]byte{}, false, nil}, {[]byte("a"), false, nil}, {nil, true, nil}},
			answers: []token{{0, []byte("x")}, {0, []byte("y")}}, challenges: []string{"", "x", "y"},
		},
		"the client has the last word": {
			steps:   []step{{[]byte("a"), false, nil}, {[]byte("b"), true, nil}},
			answers: []token{{0, []byte("x")}, {0, nil}}, challenges: []string{"", "x"},
		},
		"an empty token is none":         {steps: []step{{[]byte("a"), false, nil}, {nil, true, nil}}, answers: []token{{0, []byte{}}}, challenges: []string{"", ""}},
		"a server without SASL":          {steps: []step{{[]byte("a"), false, nil}}, answers: []token{{0, nil}}, refused: true},
		"a server that refuses":          {steps: []step{{[]byte("a"), false, nil}}, answers: []token{{-115, nil}}, refused: true},
		"a server that refuses the last": {steps: []step{{[]byte("a"), true, nil}}, answers: []token{{-115, nil}}, refused: true},
		"a server that proves nothing":   {steps: []step{{[]byte("a"), false, nil}, {nil, false, broken}}, answers: []token{{0, []byte("x")}}, refused: true, other: broken},
		"a server without an end":        {steps: []step{{[]byte("a"), false, nil}}, answers: slices.Repeat([]token{{0, []byte("x")}}, 100), refused: true},
		"a server that goes away":        {steps: []step{{[]byte("a"), false, nil}}, other: io.ErrClosedPipe},
		"a token that is too long":       {steps: []step{{[]byte("a"), false, nil}}, answers: []token{{0, make([]byte, 64<<10)}}, other: wire.ErrHandshake},
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := &peer{t: t, wire: newWire()}
			m := &mechanism{steps: tc.steps}
			presumed := time.Now().Add(timeout)
			err := p.connectWith(wire.Identification{SASL: m}, func(server net.Conn) {
				greet(server)
				<-time.After(time.Second)
				answerTokens(server, tc.answers)
				if tc.challenges == nil {
					_ = server.Close()
				}
			})
			if tc.challenges == nil {
				if err == nil || errors.Is(err, wire.ErrRefused) != tc.refused || tc.other != nil && !errors.Is(err, tc.other) {
					t.Errorf("the handshake: %v", err)
				}
				if s := p.wire.Status(); s.ID != 0 || s.Fault == nil {
					t.Errorf("session %d, fault %v", s.ID, s.Fault)
				}
				return
			}
			wantErr(t, "the handshake", err, nil)
			if !slices.Equal(m.challenges, tc.challenges) {
				t.Errorf("the mechanism was given %q, want %q", m.challenges, tc.challenges)
			}
			if got := p.wire.Status().Presumed; got.Before(presumed) {
				t.Errorf("the session is presumed to stand until %v after the handshake, want %v", got.Sub(presumed)+timeout, timeout)
			}
		})
	}
}

// nextFunc is an exchange of one function.
type nextFunc func()

func (f nextFunc) Next([]byte) ([]byte, bool, error) {
	f()
	return nil, true, nil
}

// An exchange that does not return as it should costs the connection, and neither the process nor the
// reader's goroutine. It says nothing about the credential.
func TestAnExchangeThatDoesNotReturnFailsTheHandshake(t *testing.T) {
	for name, tc := range map[string]struct {
		next   func(wait, cancel func())
		within time.Duration
		want   error
	}{
		"it blocks":        {func(wait, _ func()) { wait() }, time.Minute + time.Second, context.DeadlineExceeded},
		"the context ends": {func(wait, cancel func()) { cancel(); wait() }, time.Second, context.Canceled},
		"it panics":        {func(_, _ func()) { panic("by the test") }, time.Second, nil},
	} {
		runSynctest(t, name, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			p := &peer{t: t, wire: newWire()}
			ctx, cancel := context.WithCancel(withMinute(t))
			defer cancel()
			start := time.Now()
			exchange := nextFunc(func() { tc.next(func() { <-release }, cancel) })
			err := p.connectIn(ctx, wire.Identification{SASL: exchange}, nil, func(server net.Conn) {
				greet(server)
			})
			if took := time.Since(start); took > tc.within {
				t.Errorf("the handshake failed after %v", took)
			}
			if err == nil || errors.Is(err, wire.ErrRefused) || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
}

func TestAnExpiredSessionIsNotAuthenticated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{t: t, wire: newWire()}
		m := &mechanism{steps: []step{{[]byte("a"), true, nil}}}
		err := p.connectWith(wire.Identification{SASL: m}, func(server net.Conn) { _, _ = server.Write(framed(greeting(0))) })
		if len(m.challenges) > 0 || !errors.Is(err, wire.ErrExpired) {
			t.Errorf("the mechanism was given %q, the handshake came to %v", m.challenges, err)
		}
	})
}

func TestCloseSessionAuthenticates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		closed := make(chan error, 1)
		m := &mechanism{steps: []step{{[]byte("a"), false, nil}, {nil, true, nil}}}
		go func() {
			closed <- wire.CloseSession(t.Context(), client, wire.Identification{SASL: m}, 7, make([]byte, 16))
		}()
		must.Get(io.ReadFull(server, make([]byte, 49)))(t)
		must.Get(server.Write(framed(greeting(7))))(t)
		if held := answerTokens(server, []token{{0, []byte("x")}}); !slices.Equal(held, []string{"a"}) {
			t.Errorf("the tokens %q were sent", held)
		}
		request := make([]byte, 12)
		if _, err := io.ReadFull(server, request); err != nil || !strings.HasSuffix(string(request), "\xff\xff\xff\xf5") {
			t.Fatalf("%x was sent, %v, want that the session be closed", request, err)
		}
		server.Close()
		<-closed
	})
}
