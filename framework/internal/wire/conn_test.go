package wire_test

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

	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
)

func TestHandshake_has_one_deadline(t *testing.T) {
	for name, answer := range map[string][]byte{
		"nothing is answered":            nil,
		"half of the length is answered": {0, 0},
		"half of the answer is":          append([]byte{0, 0, 0, 37}, greeting(7)[:20]...),
	} {
		runSynctest(t, name, func(t *testing.T) {
			p, start := &peer{t: t, wire: newWire()}, time.Now()
			err := p.connect(answer)
			if took := time.Since(start); took != time.Minute || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("after %v: %v", took, err)
			}
		})
	}
}

// The end of the attempt ends the handshake at once.
func TestHandshake_ends_with_its_context(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{t: t, wire: newWire()}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		err := p.connectIn(ctx, wire.Identification{}, nil, func(net.Conn) {})
		if took := time.Since(start); took != time.Second || err == nil {
			t.Errorf("after %v: %v", took, err)
		}
	})
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
		{"a session timeout just too short", framed(granting(wire.MinTimeout - time.Millisecond))},
		{"just over the limit", binary.BigEndian.AppendUint32(nil, wire.MaxSmall+1)},
	} {
		runSynctest(t, tc.name, func(t *testing.T) {
			p := &peer{t: t, wire: newWire()}
			err := p.connect(tc.answer)
			if !errors.Is(err, wire.ErrHandshake) || strings.HasPrefix(tc.name, "an HTTP") != strings.Contains(err.Error(), "HTTP") {
				t.Errorf("%v, want that it is no handshake, and whose it is", err)
			}
			wantErr(t, "the fault", p.wire.Status().Fault, wire.ErrHandshake)
			if id := p.wire.Status().ID; id != 0 {
				t.Errorf("session %d", id)
			}
			wantErr(t, "the server's read", last(p.server.Read(make([]byte, 1))), io.EOF)
		})
	}
}

// An answer to a handshake of any length is one or is refused.
func TestAnAnswerThatIsCutShortIsNoHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := greeting(7)
		for n := range len(whole) - 1 { // the last byte is the flag that old servers don't send
			p := &peer{t: t, wire: newWire()}
			wantErr(t, "cut short", p.connect(framed(whole[:n])), wire.ErrHandshake)
		}
		p := &peer{t: t, wire: newWire()}
		must.OK(t, p.connect(framed(append(greeting(7), make([]byte, wire.MaxSmall-len(whole))...)))) // the longest
		if id := p.wire.Status().ID; id != 7 {
			t.Errorf("the longest: session %d", id)
		}
	})
}

// granting is a greeting with a session timeout.
func granting(timeout time.Duration) []byte {
	b := greeting(7)
	binary.BigEndian.PutUint32(b[4:], uint32(timeout/time.Millisecond))
	return b
}

// The handshake says what the session has seen, and which one it is.
func TestHandshake_resumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		first := proto.NewDecoder(p.hello)
		if hello := first.ConnectRequest(); hello.Session != 0 || hello.Zxid != 0 || hello.Timeout != int32(timeout.Milliseconds()) || hello.Old {
			t.Errorf("the first handshake is %+v", hello)
		}
		arrived, came := p.ask(proto.OpDelete, nil, 100)
		p.reply(answerTo(arrived, 0, ""))
		<-came
		p.reconnect()
		next := proto.NewDecoder(p.hello)
		if hello := next.ConnectRequest(); hello.Session != 7 || hello.Zxid != 77 || !bytes.Equal(hello.Password, make([]byte, 16)) {
			t.Errorf("the next handshake is %+v", hello)
		}
	})
}

func TestAnExpiredOrAnotherSessionEndsTheWire(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer int64
		want   error
	}{{"expired", 0, wire.ErrExpired}, {"another", 8, wire.ErrSubstituted}} {
		runSynctest(t, tc.name, func(t *testing.T) {
			p := newPeer(t)
			wantErr(t, "the handshake", p.connect(framed(greeting(tc.answer))), tc.want)
			wantErr(t, "ended by", p.wire.Status().Ended, tc.want)
			if p.wire.Status().Open || p.wire.Send(&wire.Request{Opcode: proto.OpExists, Limit: 1}) {
				t.Error("a request was sent in a session that the server has ended")
			}
			wantErr(t, "a connection more", p.connect(framed(greeting(7))), tc.want)
		})
	}
}

// A server answers credentials ahead of the requests before them.
func TestCredentialsAreAnsweredOutOfTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		first := p.request(proto.OpSetData)
		auth := p.request(proto.OpAuth)
		p.respond(auth, 0)
		p.respond(first, 0)
		wantErr(t, "refusal", p.wire.Status().Refusal, nil)
		wantAllAnswered(t, p.wire)
		p.respond(p.request(proto.OpAuth), proto.CodeAuthFailed)
		wantErr(t, "refusal", p.wire.Status().Refusal, wire.ErrTrial)
		p.reconnect()
		wantErr(t, "on a new connection", p.wire.Status().Refusal, nil)
	})
}

func TestSession_is_valid_until_its_deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fresh := newWire()
		if s := fresh.Status(); fresh.InTime() || !s.Deadline.IsZero() || !s.Presumed.IsZero() || s.Open || s.Refusal != nil {
			t.Errorf("a Wire without a session is %+v", s)
		}
		fresh.CloseConn(errTest)
		<-time.After(time.Second) // as old as the Wire the session need not be
		p := newPeer(t)
		check := func() {
			t.Helper()
			<-time.After(time.Until(p.wire.Status().Deadline) - time.Nanosecond)
			if !p.wire.InTime() {
				t.Error("not in time before its deadline")
			}
		}
		<-time.After(3 * time.Second)
		p.write()
		check()
		p.reconnect()
		if proven := p.wire.Status().Proven; !proven.IsZero() {
			t.Errorf("a handshake that resumes a session is taken for a proof, %v ago", time.Since(proven))
		}
		p.write()
		check()
		<-time.After(time.Nanosecond)
		if p.wire.InTime() {
			t.Error("it stands at its deadline")
		}
	})
}

func TestTheFirstFaultCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		p.server.Close()
		synctest.Wait()
		p.wire.CloseConn(errTest)
		wantErr(t, "the fault", p.wire.Status().Fault, io.EOF)
		p.reconnect()
		wantErr(t, "a new connection has the fault", p.wire.Status().Fault, nil)
	})
}

func TestAnEndIsForGoodAndForTheFirstCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		first := errors.New("first")
		deadline := p.wire.Status().Deadline
		_, came := p.ask(proto.OpWhoAmI, nil, 100)
		p.wire.End(first)
		p.wire.End(errors.New("second"))
		if got := <-came; !errors.Is(got.err, wire.ErrUnanswered) {
			t.Errorf("what was pending: %+v, want that it has no answer", got)
		}
		wantErr(t, "ended by", p.wire.Status().Ended, first)
		if p.wire.Send(&wire.Request{Opcode: proto.OpCreate, Limit: 1}) {
			t.Error("a create was sent in an abandoned session")
		}
		closed := make(chan error, 1)
		go func() { closed <- p.wire.CloseSession(t.Context()) }()
		arrived := p.receive()
		if op := int32(binary.BigEndian.Uint32(arrived[4:])); op != int32(proto.OpCloseSession) {
			t.Errorf("opcode %d, want the session's close", op)
		}
		p.reply(answerTo(arrived, 0, ""))
		wantErr(t, "the close", <-closed, nil)
		wantErr(t, "a connection more", p.connect(framed(greeting(7))), first)
		if got := p.wire.Status().Deadline; !got.Equal(deadline) {
			t.Errorf("the deadline moved by %v", got.Sub(deadline))
		}
	})
}

// The request that has waited longest, be it a ping or not.
func TestTheOldestUnansweredMayBeAPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		<-time.After(time.Second)
		start := time.Now()
		want := func(what string, at time.Duration) {
			t.Helper()
			if since := p.wire.Status().Waiting; since.Sub(start) != at {
				t.Errorf("%s: %v, want what was sent at %v", what, since.Sub(start), at)
			}
		}
		p.request(proto.OpPing)
		want("a ping alone", 0)
		<-time.After(time.Second)
		first := p.request(proto.OpExists)
		want("a ping and a request", 0)
		<-time.After(time.Second)
		p.request(proto.OpPing)
		p.respond(-2, 0)
		want("bytes have arrived", 2*time.Second)
		p.respond(first, 0)
		p.respond(-2, 0)
		wantAllAnswered(t, p.wire)
		p.respond(-2, 0) // one more than was asked for
	})
}

// A silent connection ends two thirds of the session timeout after the last bytes.
func TestASilentConnectionEnds(t *testing.T) {
	const gap = time.Millisecond
	for name, frames := range map[string]int{"no frame": 0, "frames in a hurry": 1000} {
		runSynctest(t, name, func(t *testing.T) {
			p := newPeer(t)
			for range frames {
				p.read()
				<-time.After(gap)
			}
			start := time.Now()
			_, came := p.ask(proto.OpWhoAmI, nil, 100)
			<-came
			const limit = timeout * 2 / 3
			if took := time.Since(start); !errors.Is(p.wire.Status().Fault, os.ErrDeadlineExceeded) || took > limit || took < limit-gap {
				t.Errorf("after %v: %v, want the end %v after the last frame", took, p.wire.Status().Fault, limit)
			}
		})
	}
}

// A large frame may take longer than a silent connection lasts, while it arrives or leaves.
func TestASlowFrameIsProgress(t *testing.T) {
	const size, pieces = 512 << 10, 8
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		sent := &wire.Request{Opcode: proto.OpSetData, Body: make([]byte, size), Limit: 2 * size}
		p.wire.Send(sent)
		for n := 0; n < size; {
			m := must.Get(io.ReadFull(p.server, make([]byte, min(size/pieces, size+12-n))))(t)
			n += m
			<-time.After(timeout / 4) // a third is the most, because nothing has arrived for long
		}
		must.Get(io.ReadFull(p.server, make([]byte, 12)))(t)
		frame := framed(words(-1000, 0, 1, 0, make([]byte, size)))
		for n := 0; n < len(frame); n += size / pieces {
			must.Get(p.server.Write(frame[n:min(n+size/pieces, len(frame))]))(t)
			<-time.After(timeout / 2)
		}
		synctest.Wait()
		if fault := p.wire.Status().Fault; fault != nil {
			t.Fatalf("the connection has ended: %v", fault)
		}
		answer, err := sent.Answer()
		if err != nil || len(answer.Body) != size {
			t.Errorf("%d bytes, %v", len(answer.Body), err)
		}
	})
}

// With no margin, which is for servers that pass every sign of life on at once, an answer proves the
// request itself.
func TestWithoutAMarginAWriteProvesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{t: t, wire: newWire(func(c *wire.Config) { c.MarginFor = func(time.Duration) time.Duration { return 0 } })}
		start := time.Now()
		p.reconnect()
		for n := range 10 {
			if got, want := p.wire.Status().Deadline.Sub(start), timeout+time.Duration(n)*time.Second; got != want {
				t.Errorf("the deadline is %v after the start, want %v", got, want)
			}
			<-time.After(time.Second)
			p.write()
		}
	})
}
