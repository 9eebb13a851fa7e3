package wire_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
)

// A peer is the server of a Wire, at the other end of a pipe.
type peer struct {
	t      *testing.T
	wire   *wire.Wire
	facade net.Conn // what go-zookeeper gets
	socket net.Conn // the wire's end of the pipe
	server net.Conn
	hello  []byte // the latest handshake that arrived
	xid    int32  // of the latest request
	asked  map[int32]proto.Opcode
	early  int32 // a request that a test answers later
}

// maxReply is the longest reply that tests read.
const maxReply = 128 << 10

var errTest = errors.New("by the test")

// newWire returns a Wire whose configuration is changed so.
func newWire(change ...func(*wire.Config)) *wire.Wire {
	cfg := wire.Config{Timeout: timeout, MarginFor: func(time.Duration) time.Duration { return margin }, MaxReply: maxReply}
	for _, fn := range change {
		fn(&cfg)
	}
	return wire.New(cfg)
}

// newPeer returns a peer after its first handshake.
func newPeer(t *testing.T) *peer {
	t.Helper()
	p := &peer{t: t, wire: newWire()}
	p.reconnect()
	return p
}

func (p *peer) none() {}

// reconnect makes a connection that is greeted.
func (p *peer) reconnect() { p.t.Helper(); must.OK(p.t, p.connect(framed(greeting(7)))) }

// connect makes a connection whose server answers the handshake so, and returns why it has failed.
func (p *peer) connect(answer []byte) error {
	p.t.Helper()
	return p.connectWith(wire.Identification{}, func(server net.Conn) { _, _ = server.Write(answer) })
}

// connectWith is connect with an identification, and a server that does more.
func (p *peer) connectWith(id wire.Identification, answer func(server net.Conn)) error {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	return p.connectIn(ctx, id, nil, answer)
}

// connectIn is connectWith within ctx, on a socket that wrap makes of the pipe's end.
func (p *peer) connectIn(ctx context.Context, id wire.Identification, wrap func(net.Conn) net.Conn, answer func(server net.Conn)) (err error) {
	p.t.Helper()
	client, server := net.Pipe()
	if wrap != nil {
		client = wrap(client)
	}
	p.socket, p.server = client, server
	go func() { // ends with the pipe
		if p.hello, _ = nextFrame(server); p.hello != nil {
			answer(server)
		}
	}()
	p.t.Cleanup(func() { p.wire.CloseConn(errTest); server.Close() })
	p.facade, err = p.wire.Connect(ctx, client, id)
	synctest.Wait()
	if err == nil {
		must.Get(p.facade.Write(make([]byte, 48)))(p.t) // go-zookeeper's hello
	}
	return err
}

// greeting is a server's answer to a handshake.
func greeting(session int64) []byte {
	answer := proto.ConnectReply{Timeout: int32(timeout / time.Millisecond), Session: session, Password: make([]byte, proto.PasswordSize)}
	return answer.Frame()[proto.LengthSize:]
}

// greet sends the answer of a server that grants a session.
func greet(server net.Conn) { _, _ = server.Write(framed(greeting(7))) } // an error is the client's

// reply has the wire read a frame of the server.
func (p *peer) reply(body []byte) {
	p.t.Helper()
	go p.server.Write(framed(body)) // ends with the pipe
	synctest.Wait()
}

// request sends a request and returns its number.
func (p *peer) request(opcode proto.Opcode) int32 {
	p.t.Helper()
	if opcode == proto.OpPing {
		p.goPing()
	} else if !p.wire.Send(&wire.Request{Opcode: opcode, Limit: maxReply, Class: wire.Proof}) {
		p.t.Fatal("not sent")
	}
	p.xid = xidOf(p.receive())
	if p.asked == nil {
		p.asked = make(map[int32]proto.Opcode)
	}
	p.asked[p.xid] = opcode
	return p.xid
}

// goPing has go-zookeeper send a ping.
func (p *peer) goPing() {
	p.t.Helper()
	must.Get(p.facade.Write(proto.RequestFrame(proto.XidPing, proto.OpPing, nil)))(p.t)
}

// respond answers a request with the code and, if that is 0, what the opcode asks for.
func (p *peer) respond(xid int32, code proto.Code) {
	p.t.Helper()
	var body []byte
	switch p.asked[xid] {
	case proto.OpExists, proto.OpSetData:
		body = make([]byte, proto.StatSize)
	case proto.OpSync:
		body = words("")
	}
	p.reply(replyOf(xid, 1, code, body))
}

func (p *peer) read()            { p.respond(p.request(proto.OpExists), 0) }
func (p *peer) ping()            { p.respond(p.request(proto.OpPing), 0) }
func (p *peer) write()           { p.respond(p.request(proto.OpSetData), 0) }
func (p *peer) sync()            { p.respond(p.request(proto.OpSync), 0) }
func (p *peer) writeThrottled()  { p.respond(p.request(proto.OpSetData), proto.CodeThrottled) }
func (p *peer) writeExpired()    { p.respond(p.request(proto.OpSetData), proto.CodeSessionExpired) }
func (p *peer) writeUnanswered() { p.request(proto.OpSetData) }
func (p *peer) answer()          { p.respond(p.xid, 0) }

// nextFrame reads a whole frame and returns it without its length.
func nextFrame(conn io.Reader) ([]byte, error) { return proto.ReadFrame(conn, 64<<20) }

// xidOf returns the number of a request or of a reply.
func xidOf(frame []byte) int32 { return int32(binary.BigEndian.Uint32(frame)) }

// receive returns the next frame that the server gets.
func (p *peer) receive() []byte {
	p.t.Helper()
	return must.Get(nextFrame(p.server))(p.t)
}

// An outcome is what a request came to.
type outcome struct {
	answer wire.Answer
	err    error
}

// ask sends a request and returns the frame that the server got and what comes of it.
func (p *peer) ask(opcode proto.Opcode, body []byte, limit int) (arrived []byte, came <-chan outcome) {
	p.t.Helper()
	outcomes := make(chan outcome, 1)
	go func() {
		answer, err := p.wire.Ask(&wire.Request{Opcode: opcode, Body: body, Limit: limit})
		outcomes <- outcome{answer, err}
	}()
	arrived = p.receive()
	return arrived, outcomes
}

// answerTo is a reply with a body to the request that arrived.
func answerTo(arrived []byte, code proto.Code, body string) []byte {
	return replyOf(xidOf(arrived), 77, code, []byte(body))
}

// replyOf is a reply without its length.
func replyOf(xid int32, zxid int64, code proto.Code, body []byte) []byte {
	e := proto.NewEncoder()
	e.ReplyHead(xid, zxid, code)
	e.Raw(body)
	return e.Body()
}

// words encodes numbers and strings as the protocol does.
func words(values ...any) (b []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case string:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		case []byte:
			b = append(b, v...)
		}
	}
	return b
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
func wantAllAnswered(t *testing.T, w *wire.Wire) {
	t.Helper()
	if waiting := w.Status().Waiting; !waiting.IsZero() {
		t.Errorf("a request of %v ago is taken for unanswered", time.Since(waiting))
	}
}

// withMinute returns a context of a minute.
func withMinute(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
