package zkproxy_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

const (
	// soon bounds what takes milliseconds on an idle machine.
	soon = 20 * time.Second
	// quiet is how long a test listens for what must not come. Too short a time
	// hides a fault of the proxy, and makes no test fail that shouldn't.
	quiet = 50 * time.Millisecond
)

// A bare is a field that is appended as it is.
type bare []byte

// request returns a frame with a request: fields are paths, data, flags and numbers.
func request(xid int32, opcode proto.Opcode, fields ...any) []byte {
	e := proto.NewEncoder()
	for _, field := range fields {
		switch v := field.(type) {
		case string:
			e.String(v)
		case []byte:
			e.Bytes(v)
		case bool:
			e.Bool(v)
		case int32:
			e.Int32(v)
		case bare:
			e.Raw(v)
		}
	}
	return proto.RequestFrame(xid, opcode, e.Body())
}

// createRequest creates a node that anyone may do everything with.
func createRequest(xid int32, path string, data []byte) []byte {
	return request(xid, proto.OpCreate, path, data, int32(1), int32(31), "world", "anyone", int32(0))
}

// A peer is a client that sends exactly what a test tells it to, and receives nothing
// of itself.
type peer struct {
	t    testing.TB
	conn *net.TCPConn
	xid  int32
}

// connect opens a session with the server at addr.
func connect(t testing.TB, addr string) *peer {
	t.Helper()
	p := dial(t, addr)
	p.greet()
	must.Get(p.read(soon))(t)
	return p
}

// dial connects to addr and sends nothing.
func dial(t testing.TB, addr string) *peer {
	t.Helper()
	conn := must.Get(net.DialTimeout("tcp", addr, soon))(t)
	t.Cleanup(func() { _ = conn.Close() }) // a test may have closed it
	return &peer{t: t, conn: conn.(*net.TCPConn)}
}

// greet sends a handshake.
func (p *peer) greet() {
	p.t.Helper()
	must.Get(p.conn.Write(hello().Frame()))(p.t)
}

// hello is a handshake that opens a session which ends in no test.
func hello() proto.ConnectRequest {
	return proto.ConnectRequest{Timeout: 30_000, Password: make([]byte, proto.PasswordSize)}
}

// ask asks whether the root exists, and returns the request's xid.
func (p *peer) ask() int32 {
	p.t.Helper()
	p.xid++
	must.Get(p.conn.Write(request(p.xid, proto.OpExists, "/", false)))(p.t)
	return p.xid
}

// read receives a frame.
func (p *peer) read(within time.Duration) ([]byte, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(within)) // fails on a closed connection, as does what follows
	return proto.ReadFrame(p.conn, 4<<20)
}

// wantReply receives the reply to the request with the xid.
func (p *peer) wantReply(xid int32) {
	p.t.Helper()
	d := proto.NewDecoder(must.Get(p.read(soon))(p.t))
	if got := d.ReplyHead(); got.Xid != xid || got.Code != 0 {
		p.t.Fatalf("received xid %d with code %d; want xid %d without an error", got.Xid, got.Code, xid)
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

// proxied returns a proxy before the shared server, and a client of the proxy.
func proxied(t testing.TB) (*zkproxy.Proxy, *peer) {
	t.Helper()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	return proxy, connect(t, proxy.Addr())
}
