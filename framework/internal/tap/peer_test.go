package tap_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
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

// newPeer returns a peer after its first handshake.
func newPeer(t *testing.T) *peer {
	t.Helper()
	p := &peer{t: t}
	p.tap = newTapWith(margin)
	p.reconnect()
	return p
}

func (p *peer) none() {}

// dial makes a connection on which no handshake has been sent.
func (p *peer) dial() {
	p.t.Helper()
	client, server := net.Pipe()
	wrapped, err := p.tap.Wrap(client, time.Now().Add(time.Minute))
	if err != nil {
		p.t.Fatal(err)
	}
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
	hello := make([]byte, 44)
	id, _, _ := p.tap.Session()
	binary.BigEndian.PutUint64(hello[16:], uint64(id))
	p.send(hello)
	p.reply(greeting(7))
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
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	failed := make(chan error, 1)
	go func() {
		_, err := p.client.Write(frame)
		failed <- err
	}()
	head := make([]byte, 4)
	if _, err := io.ReadFull(p.server, head); err != nil {
		p.t.Fatal(err)
	}
	arrived := make([]byte, binary.BigEndian.Uint32(head))
	if _, err := io.ReadFull(p.server, arrived); err != nil {
		p.t.Fatal(err)
	}
	if err := <-failed; err != nil {
		p.t.Fatal(err)
	}
	return arrived
}

// reply passes a frame from the server to the client.
func (p *peer) reply(body []byte) {
	p.t.Helper()
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	go p.server.Write(frame)
	if _, err := io.ReadFull(p.client, make([]byte, len(frame))); err != nil {
		p.t.Fatal(err)
	}
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
