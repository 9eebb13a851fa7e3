package wire_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
)

// Each end of the connection ends the requests.
func TestARequestEndsWithItsConnection(t *testing.T) {
	for name, end := range map[string]func(p *peer){
		"the server closes it":          func(p *peer) { p.server.Close() },
		"go-zookeeper closes it":        func(p *peer) { p.facade.Close() },
		"it is closed from outside":     func(p *peer) { p.wire.CloseConn(errTest) },
		"the server sends what is none": func(p *peer) { go p.server.Write(bytes.Repeat([]byte{0xff}, 20)) },
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := newPeer(t)
			_, came := p.ask(proto.OpWhoAmI, nil, 100)
			end(p)
			if got := <-came; !errors.Is(got.err, wire.ErrUnanswered) {
				t.Errorf("%+v, want that it has no answer", got)
			}
			wantErr(t, "the next", last(p.wire.Ask(&wire.Request{Opcode: proto.OpWhoAmI, Limit: 100})), wire.ErrUnsent)
		})
	}
}

// What the socket has not taken as a whole has certainly no effect, however the connection ends.
func TestWhatWasNotWrittenIsUnsent(t *testing.T) {
	for name, end := range map[string]func(p *peer){
		"the server closes it":   func(p *peer) { p.server.Close() },
		"the client gives it up": func(p *peer) { p.wire.CloseConn(errTest) },
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := newPeer(t)
			var sent []*wire.Request
			for range 100 {
				rq := &wire.Request{Opcode: proto.OpSetData, Body: make([]byte, 1000), Limit: 100}
				p.wire.Send(rq)
				sent = append(sent, rq)
			}
			p.receive() // the first alone, and half of the second
			must.Get(p.server.Read(make([]byte, 500)))(t)
			end(p)
			for i, rq := range sent {
				<-rq.Done()
				want := wire.ErrUnsent
				if i == 0 {
					want = wire.ErrUnanswered
				}
				if _, err := rq.Answer(); !errors.Is(err, want) {
					t.Fatalf("request %d: %v, want %v", i, err, want)
				}
			}
		})
	}
}

// A stuck socket blocks Write and Close until it is released.
type stuckSocket struct {
	net.Conn
	stuck, release chan struct{}
}

func (s stuckSocket) wait() {
	select {
	case <-s.stuck:
		<-s.release
	default:
	}
}

func (s stuckSocket) Write(p []byte) (int, error) { s.wait(); return s.Conn.Write(p) }
func (s stuckSocket) Close() error                { s.wait(); return s.Conn.Close() }

// A socket that blocks in Write and in Close holds up neither the requests' end nor the reader's, and no event is
// delivered after it.
func TestRequestsEndAlthoughTheSocketIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := 0
		p := &peer{t: t, wire: newWire(func(c *wire.Config) { c.OnEvent = func(int32, string) { events++ } })}
		s := stuckSocket{stuck: make(chan struct{}), release: make(chan struct{})}
		must.OK(t, p.connectIn(withMinute(t), wire.Identification{}, func(c net.Conn) net.Conn { s.Conn = c; return s }, greet))
		b := make([]byte, 100)
		must.Get(p.facade.Read(b))(t)
		close(s.stuck)
		rq := &wire.Request{Opcode: proto.OpSetData, Limit: 100}
		p.wire.Send(rq)
		synctest.Wait()
		start := time.Now()
		p.wire.CloseConn(errTest)
		go p.server.Write(framed(words(-1, 0, 0, 0, 3, 3, "/a"))) // ends with the pipe
		_, err := p.facade.Read(b)
		if took := time.Since(start); err == nil || took > 0 || events > 0 {
			t.Errorf("the reader's end came after %v, with error %v and %d events", took, err, events)
		}
		<-rq.Done()
		if _, err := rq.Answer(); !errors.Is(err, wire.ErrUnanswered) || time.Since(start) > time.Second {
			t.Errorf("after %v: %v, want that its outcome is unknown", time.Since(start), err)
		}
		close(s.release)
	})
}

func TestRequest_needs_a_handshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{wire: newWire()}
		wantErr(t, "without a connection", last(p.wire.Ask(&wire.Request{Opcode: proto.OpWhoAmI, Limit: 100})), wire.ErrUnsent)
		wantErr(t, "a close of the session", p.wire.CloseSession(t.Context()), wire.ErrUnsent)
	})
}

// Requests go out in the order of Send, which does not wait for a server that does not read.
func TestRequestsAreSentInOrderAndWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		var sent []*wire.Request
		for i := range 100 {
			rq := &wire.Request{Opcode: proto.OpWhoAmI, Body: []byte{byte(i)}}
			if !p.wire.Send(rq) {
				t.Fatal("it is not sent")
			}
			sent = append(sent, rq)
		}
		var owner counting
		last := &wire.Request{Opcode: proto.OpWhoAmI, Owner: &owner}
		p.wire.Send(last)
		for i := range sent {
			if frame := p.receive(); frame[8] != byte(i) {
				t.Fatalf("frame %d has the body %x", i, frame[8:])
			}
		}
		p.receive()
		p.server.Close()
		for _, rq := range append(sent, last) {
			<-rq.Done()
			if _, err := rq.Answer(); !errors.Is(err, wire.ErrUnanswered) {
				t.Errorf("%v, want ErrUnanswered", err)
			}
		}
		synctest.Wait() // Ended follows Done
		if unsent := new(wire.Request); p.wire.Send(unsent) || owner != 1 {
			t.Errorf("sent after the end, or Ended called %d times, want 1", owner)
		}
	})
}

// A counting counts the ends of its requests.
type counting int

func (c *counting) Ended() { *c++ }

// Where a recursive watch is, a read leaves no watch: see ZOOKEEPER-4466.
func TestAReadLeavesAWatchUnlessThereIsARecursiveOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		flag := func(path string, watch bool) byte {
			p.wire.Send(&wire.Request{Opcode: proto.OpExists, Body: append(words(path), 0), Watch: watch})
			frame := p.receive()
			return frame[len(frame)-1]
		}
		p.ask(proto.OpAddWatch, append(words("/tree"), 0, 0, 0, 1), 100)
		got := []byte{flag("/a", true), flag("/a", false), flag("/tree", true), flag("/tree/a", true)}
		if want := []byte{1, 0, 0, 1}; !bytes.Equal(got, want) {
			t.Errorf("watch flags %v, want %v", got, want)
		}
	})
}

// A request that was taken back is not sent.
func TestWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		first := &wire.Request{Opcode: proto.OpSetData, Body: []byte("1")} // its write waits for the server
		p.wire.Send(first)
		synctest.Wait()
		second, third := &wire.Request{Opcode: proto.OpSetData, Body: []byte("2")}, &wire.Request{Opcode: proto.OpSetData, Body: []byte("3")}
		p.wire.Send(second)
		p.wire.Send(third)
		if p.wire.Withdraw(first) || !p.wire.Withdraw(second) || p.wire.Withdraw(second) {
			t.Error("the second can be withdrawn, once, and not the first")
		}
		wantErr(t, "the second", last(second.Answer()), wire.ErrWithdrawn)
		p.receive()
		if frame := p.receive(); string(frame[8:]) != "3" {
			t.Errorf("%q was sent behind the first", frame[8:])
		}
	})
}

// The classes overtake what waits, and what the window keeps waiting.
func TestClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		send := func(class wire.Class, body string, expect int) {
			p.wire.Send(&wire.Request{Opcode: proto.OpSetData, Body: []byte(body), Expect: wire.Length{Bytes: expect}, Class: class})
		}
		send(wire.Ordinary, "large", 8<<20) // fills the window, for which a release waits, too
		p.receive()
		send(wire.Last, "last", 100)
		send(wire.Ordinary, "ordinary 1", 100)
		send(wire.Ordinary, "ordinary 2", 100)
		send(wire.Apart, "apart", 100)
		synctest.Wait()
		send(wire.Release, "release", 100)
		p.goPing()
		closing := make(chan error, 1)
		go func() { closing <- p.wire.CloseSession(t.Context()) }()
		send(wire.Proof, "proof", 100)
		var got []proto.Opcode
		for range 3 {
			got = append(got, proto.Opcode(xidOf(p.receive()[4:])))
		}
		counts := map[proto.Opcode]int{}
		for _, op := range got {
			counts[op]++
		}
		if counts[proto.OpSetData] != 1 || counts[proto.OpPing] != 1 || counts[proto.OpCloseSession] != 1 {
			t.Errorf("opcodes %v overtook, want a proof, a ping and the close", got)
		}
		synctest.Wait()
		p.respond(-1000, 0) // the window is open
		var bodies []string
		for range 5 {
			bodies = append(bodies, string(p.receive()[8:]))
		}
		if bodies[0] != "release" {
			t.Errorf("%q followed, want the release first", bodies)
		}
		bodies = bodies[1:]
		if bodies[0] == "ordinary 2" || bodies[1] == "ordinary 2" && bodies[0] != "ordinary 1" {
			t.Errorf("%q followed", bodies)
		}
		if bodies[3] != "last" {
			t.Errorf("%q followed, want the last class last", bodies)
		}
		p.server.Close()
		<-closing
	})
}

// Many small requests and bulk get their turns by bytes.
func TestBulkAndSmallRequestsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		p.wire.Send(&wire.Request{Opcode: proto.OpSetData, Expect: wire.Length{Bytes: 8 << 20}})
		p.receive()
		for range 100 {
			p.wire.Send(&wire.Request{Opcode: proto.OpSetData, Expect: wire.Length{Bytes: 64 << 10}})
			p.wire.Send(&wire.Request{Opcode: proto.OpExists, Expect: wire.Length{Bytes: 1 << 20}, Class: wire.Apart})
		}
		synctest.Wait()
		xid, small := int32(-1000), 0
		for large := 0; large < 2; xid-- {
			p.respond(xid, 0)
			frame := p.receive()
			if proto.Opcode(xidOf(frame[4:])) == proto.OpExists {
				large++
			} else {
				small++
			}
		}
		if small == 0 || small == 100 {
			t.Errorf("%d small requests between two large ones", small)
		}
	})
}

// The reply to a multiRead says how long data or names are, whether a caller waits for it or not.
func TestAMultiReadTeachesLengths(t *testing.T) {
	stat := make([]byte, proto.StatSize)
	noNode, end := words(-1, []byte{0}, -101, -101), words(-1, []byte{1}, -1)
	for name, tc := range map[string]struct {
		read    proto.Opcode
		results []byte
		want    int // the length that the next is expected to have
		code    proto.Code
	}{
		"data":         {proto.OpGetData, words(4, []byte{0}, 0, string(make([]byte, 10_000)), stat, noNode, 4, []byte{0}, 0, "a", stat, end), 10_072 * 4 / 3, 0},
		"names":        {proto.OpGetChildren, words(8, []byte{0}, 0, 1, string(make([]byte, 20_000)), 8, []byte{0}, 0, 0, noNode, end), 20_008 * 4 / 3, 0},
		"errors alone": {proto.OpGetData, words(noNode, noNode, noNode, end), (1 << 20) / 7, 0},
		"nonsense":     {proto.OpGetData, words(77), (1 << 20) / 7, 0},
		"refused":      {proto.OpGetData, nil, 1 << 20, -4},
		"too long":     {proto.OpGetData, make([]byte, 10*maxReply), 10 * maxReply * 4 / 3, 0}, // all may be of one
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := newPeer(t)
			p.wire.Send(&wire.Request{Opcode: proto.OpMultiRead, Reads: 3, Read: tc.read, Limit: maxReply})
			p.reply(answerTo(p.receive(), tc.code, string(tc.results)))
			if got := p.wire.Expected(tc.read); got/10 != tc.want/10 {
				t.Errorf("the next is expected to have %d bytes, want %d", got, tc.want)
			}
		})
	}
}

// An idleSocket takes nothing, and says nothing about that.
type idleSocket struct {
	net.Conn
	idle *atomic.Bool
}

func (s idleSocket) Write(p []byte) (int, error) {
	if s.idle.Load() {
		return 0, nil
	}
	return s.Conn.Write(p)
}

func TestASocketThatTakesNothingEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{t: t, wire: newWire()}
		var idle atomic.Bool
		must.OK(t, p.connectIn(withMinute(t), wire.Identification{}, func(c net.Conn) net.Conn { return idleSocket{c, &idle} },
			greet))
		idle.Store(true)
		_, err := p.wire.Ask(&wire.Request{Opcode: proto.OpSetData, Limit: 100})
		wantErr(t, "a request", err, wire.ErrUnsent)
		wantErr(t, "the connection", p.wire.Status().Fault, io.ErrNoProgress)
	})
}
