package tap_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/internal/must"
)

func TestSession_is_valid_until_its_deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fresh := newTap()
		if fresh.InTime() || !fresh.Deadline().IsZero() || !fresh.Presumed().IsZero() {
			t.Error("a Tap without a session is in time")
		}
		<-time.After(time.Second) // as old as the Tap the session need not be
		p := newPeer(t)
		check := func() {
			t.Helper()
			<-time.After(time.Until(p.tap.Deadline()) - time.Nanosecond)
			if !p.tap.InTime() {
				t.Error("not in time before its deadline")
			}
		}
		<-time.After(3 * time.Second)
		p.write()
		check()
		p.reconnect()
		if proven := p.tap.Proven(); !proven.IsZero() {
			t.Errorf("a handshake that resumes a session is taken for a proof, %v ago", time.Since(proven))
		}
		p.write()
		check()
		<-time.After(time.Nanosecond)
		if p.tap.InTime() {
			t.Error("it stands at its deadline")
		}
	})
}

func TestTheFirstFaultOfTheLatestConnectionCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		earlier := p.client
		p.dial()
		if _, err := earlier.Read(make([]byte, 4)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the earlier connection: %v, want it closed", err)
		}
		wantErr(t, "fault of a connection that is not the latest", p.tap.Fault(), nil)
		p.server.Close()
		wantErr(t, "read", last(p.client.Read(make([]byte, 4))), io.EOF)
		if n, err := p.client.Write(make([]byte, 44)); n != 0 || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a handshake that fails: %d, %v, want it told", n, err)
		}
		if err := p.tap.Fault(); !errors.Is(err, io.EOF) {
			t.Errorf("the fault is %v, want the first", err)
		}
		p.reconnect()
		wantErr(t, "a new connection has the fault", p.tap.Fault(), nil)
	})
}

func TestAnEndIsForGoodAndForTheFirstCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		first := errors.New("first")
		deadline := p.tap.Deadline()
		<-time.After(time.Second)
		p.dial() // whose handshake is on its way when the session ends
		p.send(make([]byte, 44))
		p.tap.End(first)
		p.tap.End(errors.New("second"))
		wantErr(t, "ended by", p.tap.Ended(), first)
		go p.server.Write(framed(greeting(7)))
		if _, err := io.ReadFull(p.client, make([]byte, 41)); !errors.Is(err, first) {
			t.Errorf("the handshake's answer: %v, want the session's end", err)
		}
		if p.tap.Send(&tap.Request{Opcode: opCreate, Limit: 1}) {
			t.Error("a create was sent in an abandoned session")
		}
		if got := p.tap.Deadline(); !got.Equal(deadline) {
			t.Errorf("the deadline moved by %v", got.Sub(deadline))
		}
		p.tap.CloseConn(errors.New("closed by a test"))
		wantErr(t, "CloseConn: the server reads", last(p.server.Read(make([]byte, 1))), io.EOF)
	})
}

// An answer to a handshake of any length is one or is refused.
func TestAnAnswerThatIsCutShortIsNoHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := greeting(7)
		for n := range len(whole) - 1 { // the last byte is the flag that old servers don't send
			p := dialled(t)
			p.send(make([]byte, 44))
			go p.server.Write(framed(whole[:n]))
			if _, err := io.ReadAll(p.client); !errors.Is(err, tap.ErrHandshake) {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
		p := dialled(t)
		p.send(make([]byte, 44))
		p.reply(append(greeting(7), make([]byte, tap.MaxHandshake-len(whole))...)) // the longest
		if id, _, _ := p.tap.Session(); id != 7 {
			t.Errorf("the longest: session %d", id)
		}
		early := &peer{t: t, tap: newTap()}
		early.dial()
		go early.server.Write(framed(whole))
		wantErr(t, "an answer before the question", last(io.ReadAll(early.client)), tap.ErrHandshake)
	})
}

// A server that sends the first half of a frame's body, and then the second.
func TestABodyMayArriveInTwoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		for n := range replyHead + statLength {
			xid := p.request(opExists)
			body := binary.BigEndian.AppendUint32(nil, uint32(xid))
			body = append(body, make([]byte, 12+statLength)...)
			frame := framed(body)
			go func() {
				_, _ = p.server.Write(frame[:n+1]) // an error is the reader's
				_, _ = p.server.Write(frame[n+1:])
			}()
			must.Get(io.ReadFull(p.client, make([]byte, len(frame))))(t)
			if _, ok := p.tap.OldestUnanswered(); ok {
				t.Fatalf("the reply in pieces of %d and the rest is not seen", n+1)
			}
		}
	})
}

// Bytes that are no frame of a request pass unchanged, and nothing is recorded.
func TestRequest_of_other_bytes_passes_unrecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		for _, p2 := range [][]byte{
			{0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7},    // shorter than a request's head
			{0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 3}, // it announces more
			{0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 3}, // it announces less
			{0, 0, 0, 4, 0, 0, 0, 1},             // a number alone
		} {
			arrived := make([]byte, len(p2))
			go func() { _, _ = io.ReadFull(p.server, arrived) }()
			must.Get(p.client.Write(p2))(t)
			synctest.Wait()
			if string(arrived) != string(p2) {
				t.Errorf("%x was sent for %x", arrived, p2)
			}
			if _, ok := p.tap.OldestUnanswered(); ok {
				t.Errorf("%x is taken for a request", p2)
			}
		}
	})
}

// The request that has waited longest, be it a ping or not.
func TestTheOldestUnansweredMayBeAPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		start := time.Now()
		want := func(what string, at time.Duration) {
			t.Helper()
			if sent, ok := p.tap.OldestUnanswered(); !ok || sent.Sub(start) != at {
				t.Errorf("%s: %v, %v, want what was sent at %v", what, sent.Sub(start), ok, at)
			}
		}
		p.request(opPing)
		want("a ping alone", 0)
		<-time.After(time.Second)
		first := p.request(opExists)
		want("a ping and a request", 0)
		<-time.After(time.Second)
		p.request(opPing)
		p.respond(-2, 0)
		want("a request and a later ping", time.Second)
		p.respond(first, 0)
		want("the second ping", 2*time.Second)
		p.respond(-2, 0)
		wantAllAnswered(t, p.tap)
		p.respond(-2, 0) // one more than was asked for
		client, server := net.Pipe()
		defer client.Close()
		defer server.Close()
		none := newTap()
		wantAllAnswered(t, none)
		wantErr(t, "without a connection", none.Refusal(), nil)
		none.CloseConn(errors.New("closed by a test"))
	})
}
