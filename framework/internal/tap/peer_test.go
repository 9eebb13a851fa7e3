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

// Opcodes and codes of the protocol.
const (
	opExists  = 3
	opSetData = 5
	opSync    = 9
	opPing    = 11
	opAuth    = 100

	codeExpired   = -112
	codeThrottled = -127
	codeRefused   = -115
)

// A peer is a wire client and its server at once, on the two ends of a pipe
// with a Tap in between.
type peer struct {
	t      *testing.T
	tap    *tap.Tap
	client *tap.Conn
	server net.Conn
	xid    int32
	asked  map[int32]int32 // opcodes of requests
	early  int32           // a request that a test answers later
}

// maxReply is the longest reply that tests read.
const maxReply = 128 << 10

func newTap() *tap.Tap { return newTapWith(margin) }

func newTapWith(margin time.Duration) *tap.Tap {
	return tap.New(tap.Config{
		MarginFor: func(time.Duration) time.Duration { return margin },
		MaxReply:  maxReply,
	})
}

// dialled returns a peer with a connection on which no handshake has been sent.
func dialled(t *testing.T) *peer {
	t.Helper()
	p := &peer{t: t, tap: newTap()}
	p.dial()
	return p
}

// newPeer returns a peer after its first handshake.
func newPeer(t *testing.T) *peer {
	t.Helper()
	p := &peer{t: t, tap: newTap()}
	p.reconnect()
	return p
}

func (p *peer) none() {}

// dial makes a connection on which no handshake has been sent.
func (p *peer) dial() {
	p.t.Helper()
	client, server := net.Pipe()
	wrapped := must.Get(p.tap.Wrap(client, time.Now().Add(time.Minute)))(p.t)
	p.client, p.server = wrapped, server
	p.t.Cleanup(func() { wrapped.Close(); server.Close() })
}

func (p *peer) reconnect() {
	p.t.Helper()
	p.dial()
	p.greet()
}

// greet makes the handshake.
func (p *peer) greet() {
	p.t.Helper()
	id, _, _ := p.tap.Session()
	p.hello(0, id)
	p.reply(greeting(7))
}

// hello sends a handshake that says which zxid the client has seen and which session it resumes. It returns
// what arrived.
func (p *peer) hello(seen uint64, session int64) []byte {
	p.t.Helper()
	body := make([]byte, 44)
	binary.BigEndian.PutUint64(body[4:], seen)
	binary.BigEndian.PutUint64(body[16:], uint64(session))
	return p.send(body)
}

// greeting is a server's answer to a handshake.
func greeting(session int64) []byte {
	b := make([]byte, 4, 37)
	b = binary.BigEndian.AppendUint32(b, uint32(timeout/time.Millisecond))
	b = binary.BigEndian.AppendUint64(b, uint64(session))
	b = binary.BigEndian.AppendUint32(b, 16)
	return append(b, make([]byte, 17)...)
}

// send passes a frame from the client to the server and returns what arrived.
func (p *peer) send(body []byte) []byte {
	p.t.Helper()
	frame := framed(body)
	failed := make(chan error, 1)
	go func() {
		_, err := p.client.Write(frame)
		failed <- err
	}()
	arrived := p.receive()
	must.OK(p.t, <-failed)
	return arrived
}

// reply passes a frame from the server to the client.
func (p *peer) reply(body []byte) {
	p.t.Helper()
	frame := framed(body)
	go p.server.Write(frame)
	must.Get(io.ReadFull(p.client, make([]byte, len(frame))))(p.t)
}

// request sends a request and returns its number.
func (p *peer) request(opcode int32) int32 {
	p.t.Helper()
	p.xid++
	xid := p.xid
	if opcode == opPing {
		xid = -2
	}
	if p.asked == nil {
		p.asked = make(map[int32]int32)
	}
	p.asked[xid] = opcode
	b := binary.BigEndian.AppendUint32(nil, uint32(xid))
	p.send(binary.BigEndian.AppendUint32(b, uint32(opcode)))
	return xid
}

// respond answers a request with the code and, if that is 0, what the opcode asks for.
func (p *peer) respond(xid, code int32) {
	p.t.Helper()
	b := binary.BigEndian.AppendUint32(nil, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	switch p.asked[xid] {
	case opExists, opSetData:
		b = append(b, make([]byte, statLength)...)
	case opSync:
		b = append(b, 0, 0, 0, 0)
	}
	p.reply(b)
}

func (p *peer) read()            { p.respond(p.request(opExists), 0) }
func (p *peer) ping()            { p.respond(p.request(opPing), 0) }
func (p *peer) write()           { p.respond(p.request(opSetData), 0) }
func (p *peer) sync()            { p.respond(p.request(opSync), 0) }
func (p *peer) writeThrottled()  { p.respond(p.request(opSetData), codeThrottled) }
func (p *peer) writeExpired()    { p.respond(p.request(opSetData), codeExpired) }
func (p *peer) writeUnanswered() { p.request(opSetData) }
func (p *peer) answer()          { p.respond(p.xid, 0) }

// nextFrame reads a whole frame and returns it without its length.
func nextFrame(conn io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(head))
	_, err := io.ReadFull(conn, frame)
	return frame, err
}

// receive returns the next frame that the server gets.
func (p *peer) receive() []byte {
	p.t.Helper()
	return must.Get(nextFrame(p.server))(p.t)
}

// runSynctest runs a subtest in virtual time.
func runSynctest(t *testing.T, name string, fn func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, fn) })
}

// wantErr fails the test unless err matches target, which is nil for no error.
func wantErr(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: error %v, want one that matches %v", what, err, target)
	}
}

// last returns the error that a call returned last.
func last(_ any, err error) error { return err }

// wantAllAnswered fails the test if a request waits for its reply.
func wantAllAnswered(t *testing.T, tp *tap.Tap) {
	t.Helper()
	if sent, waiting := tp.OldestUnanswered(); waiting {
		t.Errorf("a request of %v ago is taken for unanswered", time.Since(sent))
	}
}
