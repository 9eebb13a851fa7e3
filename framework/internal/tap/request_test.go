package tap_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/internal/proto"
)

const (
	opCreate   = 1
	opCreate2  = 15
	opAddWatch = 106
	opWhoAmI   = 107

	statLength = proto.StatSize
	replyHead  = proto.ReplyHeadSize
)

// An outcome is what a request came to.
type outcome struct {
	answer tap.Answer
	err    error
}

// ask sends a request and returns the frame that the server got and what comes of it.
func (p *peer) ask(opcode proto.Opcode, body []byte, limit int) (arrived []byte, came <-chan outcome) {
	p.t.Helper()
	outcomes := make(chan outcome, 1)
	go func() {
		answer, err := p.tap.Ask(opcode, body, limit)
		outcomes <- outcome{answer, err}
	}()
	arrived = p.receive()
	return arrived, outcomes
}

// answerTo is a reply with a body to the request that arrived.
func answerTo(arrived []byte, code int32, body string) []byte {
	b := append([]byte(nil), arrived[:4]...)
	b = binary.BigEndian.AppendUint64(b, 77)
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	return append(b, body...)
}

// TestTheNextHandshakeKnowsTheAnswersZxid: the wire client, which sees no answer, sends an older zxid, or a
// newer one.
func TestTheNextHandshakeKnowsTheAnswersZxid(t *testing.T) {
	for own, want := range map[uint64]uint64{0: 77, 78: 78} {
		p := newPeer(t)
		arrived, came := p.ask(proto.OpDelete, nil, 100)
		go func() {
			_, _ = p.server.Write(framed(answerTo(arrived, 0, "")))
			_ = p.server.Close()
		}()
		_, _ = io.ReadAll(p.client)
		<-came
		p.dial()
		if got := binary.BigEndian.Uint64(p.hello(own, 7)[4:]); got != want {
			t.Errorf("the handshake says that the client has seen zxid %d, want %d", got, want)
		}
	}
}

// A request and its answer pass by the wire client, in whatever pieces they come.
func TestAnAnswerReachesWhoAskedAndNotTheWireClient(t *testing.T) {
	for _, n := range []int{1, 3, 4, 19, 20, 21, 1000} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t)
			first, second := p.request(opExists), p.request(opExists)
			arrived, came := p.ask(opWhoAmI, []byte("body"), 100)
			xid := int32(binary.BigEndian.Uint32(arrived))
			if xid >= -9 || binary.BigEndian.Uint32(arrived[4:]) != opWhoAmI || string(arrived[8:]) != "body" {
				t.Fatalf("%x was sent", arrived)
			}
			again, cameAgain := p.ask(opWhoAmI, nil, 100)
			if bytes.Equal(again[:4], arrived[:4]) {
				t.Error("two requests have one xid")
			}
			replies := [][]byte{answerTo([]byte{0, 0, 0, 1}, -101, "one"), answerTo(arrived, -6, "theirs"), answerTo([]byte{0, 0, 0, 2}, -102, "two"), answerTo(again, 0, "")}
			var stream []byte
			for _, body := range replies {
				stream = append(stream, framed(body)...)
			}
			go func() {
				for rest := stream; len(rest) > 0; rest = rest[min(n, len(rest)):] {
					_, _ = p.server.Write(rest[:min(n, len(rest))])
				}
				_ = p.server.Close()
			}()
			passed, _ := io.ReadAll(p.client)
			if want := append(framed(replies[0]), framed(replies[2])...); !bytes.Equal(passed, want) {
				t.Errorf("the wire client read %x, want %x (requests %d and %d)", passed, want, first, second)
			}
			if got := <-came; got.err != nil || got.answer.Zxid != 77 || got.answer.Code != -6 || string(got.answer.Body) != "theirs" {
				t.Errorf("the answer is %+v", got)
			}
			if got := <-cameAgain; got.err != nil || got.answer.Code != 0 || len(got.answer.Body) != 0 {
				t.Errorf("the second answer is %+v", got)
			}
			wantAllAnswered(t, p.tap)
		})
	}
}

// An addWatch is answered by the follower alone.
func TestAnAddWatchIsNoProofOfTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		deadline, presumed := p.tap.Deadline(), p.tap.Presumed()
		<-time.After(2 * margin)
		arrived, came := p.ask(opAddWatch, nil, 100)
		go p.server.Write(framed(answerTo(arrived, 0, "\x00\x00\x00\x00")))
		go io.Copy(io.Discard, p.client)
		if got := <-came; got.err != nil {
			t.Fatal(got.err)
		}
		if moved := p.tap.Deadline().Sub(deadline); moved != 0 {
			t.Errorf("the deadline has moved by %v", moved)
		}
		if moved := p.tap.Presumed().Sub(presumed); moved != 2*margin {
			t.Errorf("what is presumed has moved by %v, want %v", moved, 2*margin)
		}
	})
}

// Each end of the connection ends the requests.
func TestARequestEndsWithItsConnection(t *testing.T) {
	for name, end := range map[string]func(p *peer){
		"the server closes it":          func(p *peer) { p.server.Close(); io.ReadAll(p.client) },
		"the wire client closes it":     func(p *peer) { p.client.Close() },
		"it is closed from outside":     func(p *peer) { p.tap.CloseConn(errors.New("for a test")) },
		"another takes its place":       func(p *peer) { p.dial() },
		"the server sends what is none": func(p *peer) { go p.server.Write([]byte{0xff, 0, 0, 0}); io.ReadAll(p.client) },
		"a write fails":                 func(p *peer) { p.server.Close(); p.client.Write(make([]byte, 12)) },
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := newPeer(t)
			_, came := p.ask(opWhoAmI, nil, 100)
			end(p)
			if got := <-came; !errors.Is(got.err, tap.ErrUnanswered) {
				t.Errorf("%+v, want that it has no answer", got)
			}
			if name == "another takes its place" {
				return // no handshake yet, either
			}
			if _, err := p.tap.Ask(opWhoAmI, nil, 100); !errors.Is(err, tap.ErrUnsent) {
				t.Errorf("the next: %v, want that it is not sent", err)
			}
		})
	}
}

func TestRequest_needs_a_handshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{t: t, tap: newTap()}
		wantErr(t, "without a connection", last(p.tap.Ask(opWhoAmI, nil, 100)), tap.ErrUnsent)
		p.dial()
		wantErr(t, "before the handshake", last(p.tap.Ask(opWhoAmI, nil, 100)), tap.ErrUnsent)
	})
}

// Requests go out in the order of Send, which does not wait for a server that does not read.
func TestRequestsAreSentInOrderAndWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		var sent []*tap.Request
		for i := range 100 {
			rq := &tap.Request{Opcode: opWhoAmI, Body: []byte{byte(i)}}
			if !p.tap.Send(rq) {
				t.Fatal("it is not sent")
			}
			sent = append(sent, rq)
		}
		ended := 0
		last := &tap.Request{Opcode: opWhoAmI, OnEnd: func() { ended++ }}
		p.tap.Send(last)
		for i := range sent {
			if frame := p.receive(); frame[8] != byte(i) {
				t.Fatalf("frame %d has the body %x", i, frame[8:])
			}
		}
		p.server.Close()
		for _, rq := range append(sent, last) {
			<-rq.Done()
			if _, err := rq.Answer(); !errors.Is(err, tap.ErrUnanswered) {
				t.Errorf("%v, want ErrUnanswered", err)
			}
		}
		synctest.Wait() // OnEnd follows Done
		if unsent := new(tap.Request); p.tap.Send(unsent) || ended != 1 {
			t.Errorf("sent after the end, or OnEnd called %d times, want 1", ended)
		}
	})
}

// Where a recursive watch is, a read leaves no watch: see ZOOKEEPER-4466.
func TestAReadLeavesAWatchUnlessThereIsARecursiveOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		flag := func(path string, watch bool) byte {
			p.tap.Send(&tap.Request{Opcode: opExists, Body: append(words(path), 0), Watch: watch})
			frame := p.receive()
			return frame[len(frame)-1]
		}
		p.ask(opAddWatch, append(words("/tree"), 0, 0, 0, 1), 100)
		got := []byte{flag("/a", true), flag("/a", false), flag("/tree", true), flag("/tree/a", true)}
		if want := []byte{1, 0, 0, 1}; !bytes.Equal(got, want) {
			t.Errorf("watch flags %v, want %v", got, want)
		}
		p.client.Close()
	})
}
