package tap_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/internal/check"
	"github.com/docent-go/docent/internal/must"
)

func TestSession_is_valid_until_its_deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fresh := newTap()
		check.That(t, !fresh.Stands() && fresh.Deadline().IsZero() && fresh.Presumed().IsZero(),
			"one without a session stands")
		<-time.After(time.Second) // as old as the Tap the session need not be
		p := newPeer(t)
		verify := func() {
			t.Helper()
			<-time.After(time.Until(p.tap.Deadline()) - time.Nanosecond)
			check.That(t, p.tap.Stands(), "it does not stand before its deadline")
		}
		<-time.After(3 * time.Second)
		p.write()
		verify()
		p.reconnect()
		if proven := p.tap.Proven(); !proven.IsZero() {
			t.Errorf("a handshake that resumes a session is taken for a proof, %v ago", time.Since(proven))
		}
		p.write()
		verify()
		<-time.After(time.Nanosecond)
		check.That(t, !p.tap.Stands(), "it stands at its deadline")
	})
}

func TestTheFirstFaultOfTheLatestConnectionCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		earlier := p.client
		p.dial()
		check.Is(t, must.Err(earlier.Read(make([]byte, 4))), io.ErrClosedPipe,
			"the earlier connection, want it closed")
		check.Is(t, p.tap.Fault(), nil, "fault of a connection that is not the latest")
		p.server.Close()
		check.Is(t, must.Err(p.client.Read(make([]byte, 4))), io.EOF, "read")
		if n, err := p.client.Write(make([]byte, 44)); n != 0 || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a handshake that fails: %d, %v, want it told", n, err)
		}
		check.Is(t, p.tap.Fault(), io.EOF, "the fault is, want the first")
		p.reconnect()
		check.Is(t, p.tap.Fault(), nil, "a new connection has the fault")
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
		check.Is(t, p.tap.Ended(), first, "ended by")
		go p.server.Write(framed(greeting(7)))
		check.Is(t, must.Err(io.ReadFull(p.client, make([]byte, 41))), first,
			"the handshake's answer, want the session's end")
		got := p.tap.Deadline()
		check.That(t, got.Equal(deadline), "the deadline moved by %v", got.Sub(deadline))
		p.tap.CloseConn(errors.New("closed by a test"))
		check.Is(t, must.Err(p.server.Read(make([]byte, 1))), io.EOF, "CloseConn: the server reads")
	})
}

// An answer to a handshake of any length is one or is refused.
func TestAnAnswerThatIsCutShortIsNoHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := greeting(7)
		for n := range len(whole) - 1 { // the last byte is the flag that old servers don't send
			p := &peer{t: t, tap: newTap()}
			p.dial()
			p.send(make([]byte, 44))
			go p.server.Write(framed(whole[:n]))
			check.Is(t, must.Err(io.ReadAll(p.client)), tap.ErrHandshake, "%d bytes", n)
		}
		p := &peer{t: t, tap: newTap()}
		p.dial()
		p.send(make([]byte, 44))
		p.reply(append(greeting(7), make([]byte, tap.MaxHandshake-len(whole))...)) // the longest
		id, _, _ := p.tap.Session()
		check.That(t, id == 7, "the longest: session %d", id)
		early := &peer{t: t, tap: newTap()}
		early.dial()
		go early.server.Write(framed(whole))
		check.Is(t, must.Err(io.ReadAll(early.client)), tap.ErrHandshake, "an answer before the question")
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
			_, ok := p.tap.OldestUnanswered()
			must.That(t, !ok, "the reply in pieces of %d and the rest is not seen", n+1)
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
			check.Equal(t, string(arrived), string(p2), "%x was sent for %x", arrived, p2)
			_, ok := p.tap.OldestUnanswered()
			check.That(t, !ok, "%x is taken for a request", p2)
		}
	})
}

// A read that is not of the form that the client writes is left as it is, armed or not.
func TestAReadOfAnotherFormIsLeftAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		defer p.tap.Arm(tap.ReadExists, "/a")()
		head := []byte{0, 0, 0, 1, 0, 0, 0, opExists}
		for _, rest := range [][]byte{
			{0, 0, 0, 2, '/', 'a'},       // no watch flag
			{0, 0, 0, 2, '/', 'a', 0, 0}, // more than that
			{0, 0, 0, 9, '/', 'a', 0},    // a path that is cut short
			{0, 0},
		} {
			body := append(bytes.Clone(head), rest...)
			sent := p.send(body)
			check.That(t, bytes.Equal(sent, body), "%x was sent for %x", sent, body)
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
		_, ok := p.tap.OldestUnanswered()
		check.That(t, !ok, "everything is answered, and something is not")
		p.respond(-2, 0) // one more than was asked for
		client, server := net.Pipe()
		defer client.Close()
		defer server.Close()
		none := newTap()
		_, ok = none.OldestUnanswered()
		check.That(t, !ok, "something waits without a connection")
		check.Is(t, none.Refusal(), nil, "without a connection")
		none.CloseConn(errors.New("closed by a test"))
	})
}
