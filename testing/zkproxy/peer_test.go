package zkproxy_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
)

const (
	// soon bounds what takes milliseconds on an idle machine.
	soon = 20 * time.Second
	// quiet is how long a test listens for what must not come. Too short a time
	// hides a fault of the proxy, and makes no test fail that shouldn't.
	quiet = 50 * time.Millisecond
	// session is long enough that no session ends in a test.
	session = 30 * time.Second
)

// nodes numbers the nodes of all tests: they share a server.
var nodes atomic.Int64

// newNode returns a path that no other test uses.
func newNode() string { return fmt.Sprintf("/n%d", nodes.Add(1)) }

// A packet is a frame under construction.
type packet []byte

func (p packet) int32(v int32) packet { return binary.BigEndian.AppendUint32(p, uint32(v)) }
func (p packet) int64(v int64) packet { return binary.BigEndian.AppendUint64(p, uint64(v)) }
func (p packet) bool(v bool) packet {
	if v {
		return append(p, 1)
	}
	return append(p, 0)
}
func (p packet) bytes(v []byte) packet  { return append(p.int32(int32(len(v))), v...) }
func (p packet) string(v string) packet { return p.bytes([]byte(v)) }

// create is the body of a create of a persistent node, for opcode.
func (p packet) create(opcode proto.Opcode, path string, data []byte) packet {
	flags := map[proto.Opcode]int32{proto.OpCreateContainer: proto.FlagContainer, proto.OpCreateTTL: proto.FlagTTL}[opcode]
	p = p.string(path).bytes(data).int32(1).int32(31).string("world").string("anyone").int32(flags)
	if opcode == proto.OpCreateTTL {
		p = p.int64(1000)
	}
	return p
}

// part begins an operation in the body of a multi, and end ends the body.
func (p packet) part(opcode proto.Opcode) packet { return p.int32(int32(opcode)).bool(false).int32(-1) }
func (p packet) end() packet                     { return p.int32(-1).bool(true).int32(-1) }

// A peer is a client that sends exactly what a test tells it to, and receives nothing
// of itself.
type peer struct {
	t        testing.TB
	conn     *net.TCPConn
	id       int64
	password []byte
	xid      int32
}

// A reply is a frame from the server.
type reply struct {
	proto.ReplyHead
	body []byte
}

// connect opens a session with the server at addr.
func connect(t testing.TB, addr string) *peer {
	t.Helper()
	p := dial(t, addr)
	p.sendHandshake()
	p.receiveHandshake()
	return p
}

// dial connects to addr and sends nothing.
func dial(t testing.TB, addr string) *peer {
	t.Helper()
	conn := must.Get(net.DialTimeout("tcp", addr, soon))(t)
	t.Cleanup(func() { _ = conn.Close() }) // a test may have closed it
	return &peer{t: t, conn: conn.(*net.TCPConn), password: make([]byte, 16)}
}

func (p *peer) sendHandshake() {
	p.t.Helper()
	must.Get(p.conn.Write(p.handshake()))(p.t)
}

// handshake is a handshake that resumes the peer's session, or opens one.
func (p *peer) handshake() []byte {
	return proto.ConnectRequest{Timeout: int32(session / time.Millisecond), Session: p.id, Password: p.password}.Frame()
}

func (p *peer) receiveHandshake() {
	p.t.Helper()
	d := proto.NewDecoder(must.Get(p.read(soon))(p.t))
	answer := d.ConnectReply()
	must.OK(p.t, d.End())
	p.id, p.password = answer.Session, answer.Password
}

// send sends a request and returns its xid.
func (p *peer) send(opcode proto.Opcode, body packet) int32 {
	p.t.Helper()
	p.xid++
	must.Get(p.conn.Write(proto.RequestFrame(p.xid, opcode, body)))(p.t)
	return p.xid
}

// ping sends a ping.
func (p *peer) ping() {
	p.t.Helper()
	must.Get(p.conn.Write(proto.RequestFrame(proto.XidPing, proto.OpPing, nil)))(p.t)
}

// ask asks whether a node exists, and returns the request's xid.
func (p *peer) ask(path string) int32 {
	p.t.Helper()
	return p.send(proto.OpExists, packet{}.string(path).bool(false))
}

// read receives a frame.
func (p *peer) read(within time.Duration) ([]byte, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(within)) // fails on a closed connection, as does what follows
	return proto.ReadFrame(p.conn, 4<<20)
}

// receive returns the next frame, which must come.
func (p *peer) receive() reply {
	p.t.Helper()
	d := proto.NewDecoder(must.Get(p.read(soon))(p.t))
	r := reply{d.ReplyHead(), d.Rest()}
	must.OK(p.t, d.Err())
	return r
}

// call sends a request and returns its reply, which must be the next frame.
func (p *peer) call(opcode proto.Opcode, body packet) reply {
	p.t.Helper()
	xid := p.send(opcode, body)
	r := p.receive()
	if r.Xid != xid {
		p.t.Fatalf("received xid %d; want %d", r.Xid, xid)
	}
	return r
}

// must is call for a request that succeeds.
func (p *peer) must(opcode proto.Opcode, body packet) reply {
	p.t.Helper()
	r := p.call(opcode, body)
	if r.Code != 0 {
		p.t.Fatalf("opcode %d: error code %d", opcode, r.Code)
	}
	return r
}

// exists reports whether the node exists.
func (p *peer) exists(path string) bool {
	p.t.Helper()
	r := p.call(proto.OpExists, packet{}.string(path).bool(false))
	if r.Code != proto.CodeOK && r.Code != proto.CodeNoNode {
		p.t.Fatalf("exists %s: error code %d", path, r.Code)
	}
	return r.Code == proto.CodeOK
}

// wantReplies receives the replies to the requests with these xids, in this order.
func (p *peer) wantReplies(xids ...int32) {
	p.t.Helper()
	for _, xid := range xids {
		if r := p.receive(); r.Xid != xid {
			p.t.Fatalf("received xid %d; want %d", r.Xid, xid)
		}
	}
}

// wantSilence checks that nothing arrives, and that the connection is open.
func (p *peer) wantSilence() {
	p.t.Helper()
	body, err := p.read(quiet)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatalf("received %d bytes, %v; want silence", len(body), err)
	}
}

// wantEnd checks that the connection ends without another frame.
func (p *peer) wantEnd() {
	p.t.Helper()
	body, err := p.read(soon)
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatalf("received %d bytes, %v; want the connection to end", len(body), err)
	}
}

// wantHit waits until a rule has been hit.
func wantHit(t *testing.T, hit <-chan struct{}) {
	t.Helper()
	select {
	case <-hit:
	case <-time.After(soon):
		t.Fatal("the rule wasn't hit")
	}
}

// wantNoHit checks that a rule hasn't been hit.
func wantNoHit(t *testing.T, hit <-chan struct{}) {
	t.Helper()
	select {
	case <-hit:
		t.Error("the rule was hit")
	default:
	}
}
