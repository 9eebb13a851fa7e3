package zkserver_test

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// Opcodes of the protocol, for the tests' own client.
const (
	create          = 1
	del             = 2
	exists          = 3
	getData         = 4
	setData         = 5
	getACL          = 6
	setACL          = 7
	getChildren     = 8
	syncOp          = 9
	ping            = 11
	getChildren2    = 12
	check           = 13
	multi           = 14
	create2         = 15
	checkWatches    = 17
	removeWatches   = 18
	createContainer = 19
	createTTL       = 21
	multiRead       = 22
	auth            = 100
	setWatches      = 101
	getEphemerals   = 103
	countChildren   = 104
	setWatches2     = 105
	addWatch        = 106
	closeSession    = -11
)

// An entry is one entry of an ACL.
type entry struct {
	perms      int32
	scheme, id string
}

func open() []entry { return []entry{{31, "world", "anyone"}} }

// A sub is one operation of a multi.
type sub struct {
	op   int32
	body []byte
}

// A bare is a field that is appended as it is.
type bare []byte

// body encodes fields one after the other.
func body(fields ...any) []byte {
	e := proto.NewEncoder()
	for _, field := range fields {
		switch v := field.(type) {
		case int:
			e.Int32(int32(v))
		case int32:
			e.Int32(v)
		case int64:
			e.Int64(v)
		case bool:
			e.Bool(v)
		case string:
			e.String(v)
		case []byte:
			e.Bytes(v)
		case []string:
			e.Strings(v)
		case []entry:
			e.Int32(int32(len(v)))
			for _, a := range v {
				e.Raw(body(a.perms, a.scheme, a.id))
			}
		case []sub:
			for _, s := range v {
				e.Raw(body(s.op, false, -1, bare(s.body)))
			}
			e.Raw(body(-1, true, -1))
		case bare:
			e.Raw(v)
		default:
			panic(fmt.Sprintf("body: field %T", field))
		}
	}
	return e.Body()
}

// A reply is what the server has sent: an answer, or an event with xid -1.
type reply struct {
	xid  int32
	zxid int64
	err  int32
	body []byte
}

// A client speaks the protocol by hand: any opcode, any bytes, pipelined as the
// test likes.
type client struct {
	nc       net.Conn
	r        *bufio.Reader
	xid      int32
	session  int64
	password []byte
	timeout  time.Duration
}

// handshake sends a connect request and decodes the answer. Session 0 asks for a new
// one.
func handshake(nc net.Conn, timeout time.Duration, seen, session int64, password []byte) (*client, error) {
	c := newClient(nc)
	frame, err := c.greet(proto.ConnectRequest{Zxid: seen, Timeout: int32(timeout.Milliseconds()), Session: session, Password: password})
	switch {
	case err != nil:
		return nil, err
	case len(frame) != connectLength:
		return nil, fmt.Errorf("connect response of %d bytes, want %d", len(frame), connectLength)
	}
	return c, nil
}

// connectLength is the length of an answer to a handshake.
const connectLength = 37

func newClient(nc net.Conn) *client { return &client{nc: nc, r: bufio.NewReader(nc)} }

// greet sends a handshake, returns what answers it, and takes the session from that if it is an answer.
func (c *client) greet(hello proto.ConnectRequest) (frame []byte, err error) {
	if hello.Password == nil {
		hello.Password = make([]byte, proto.PasswordSize)
	}
	if _, err := c.nc.Write(hello.Frame()); err != nil {
		return nil, err
	}
	frame, err = c.readFrame()
	if len(frame) == connectLength {
		d := proto.NewDecoder(frame)
		answer := d.ConnectReply()
		c.timeout, c.session, c.password = time.Duration(answer.Timeout)*time.Millisecond, answer.Session, answer.Password
	}
	return frame, err
}

func (c *client) readFrame() ([]byte, error) { return proto.ReadFrame(c.r, 64<<20) }

// send sends a request and returns its xid.
func (c *client) send(op int32, fields ...any) (int32, error) {
	c.xid++
	xid := c.xid
	switch op {
	case ping:
		xid = -2
	case auth:
		xid = -4
	case setWatches, setWatches2:
		xid = -8
	}
	_, err := c.nc.Write(framed(xid, op, bare(body(fields...))))
	return xid, err
}

// receive returns the next frame.
func (c *client) receive() (reply, error) {
	frame, err := c.readFrame()
	if err != nil {
		return reply{}, err
	}
	d := proto.NewDecoder(frame)
	head := d.ReplyHead()
	return reply{head.Xid, head.Zxid, int32(head.Code), d.Rest()}, d.Err()
}

// call sends a request and returns its answer. Events that come before it are passed over.
func (c *client) call(t testing.TB, op int32, fields ...any) reply {
	t.Helper()
	xid, err := c.send(op, fields...)
	if err != nil {
		t.Fatalf("send op %d: %v", op, err)
	}
	for {
		got, err := c.receive()
		if err != nil {
			t.Fatalf("op %d: %v", op, err)
		}
		if got.xid == xid {
			return got
		}
		if got.xid != -1 {
			t.Fatalf("op %d: answer to xid %d, want %d", op, got.xid, xid)
		}
	}
}
