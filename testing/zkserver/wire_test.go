package zkserver_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
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
	var b []byte
	for _, field := range fields {
		switch v := field.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(int32(v)))
		case int32:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		case bool:
			if v {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		case string:
			b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
			b = append(b, v...)
		case []byte:
			if v == nil {
				b = binary.BigEndian.AppendUint32(b, 0xffffffff)
				continue
			}
			b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
			b = append(b, v...)
		case []string:
			b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
			for _, s := range v {
				b = append(b, body(s)...)
			}
		case []entry:
			b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
			for _, e := range v {
				b = append(b, body(e.perms, e.scheme, e.id)...)
			}
		case []sub:
			for _, s := range v {
				b = append(b, body(s.op, false, -1)...)
				b = append(b, s.body...)
			}
			b = append(b, body(-1, true, -1)...)
		case bare:
			b = append(b, v...)
		default:
			panic(fmt.Sprintf("body: field %T", field))
		}
	}
	return b
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
	c := &client{nc: nc, r: bufio.NewReader(nc)}
	if password == nil {
		password = make([]byte, 16)
	}
	b := body(0, seen, int(timeout.Milliseconds()), session, password, false)
	if err := c.write(b); err != nil {
		return nil, err
	}
	answer, err := c.readFrame()
	if err != nil {
		return nil, err
	}
	if len(answer) != 37 {
		return nil, fmt.Errorf("connect response of %d bytes, want 37", len(answer))
	}
	c.timeout = time.Duration(binary.BigEndian.Uint32(answer[4:])) * time.Millisecond
	c.session = int64(binary.BigEndian.Uint64(answer[8:]))
	c.password = answer[20:36]
	return c, nil
}

func (c *client) write(frame []byte) error {
	_, err := c.nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	return err
}

func (c *client) readFrame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c.r, frame)
	return frame, err
}

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
	return xid, c.write(body(xid, op, bare(body(fields...))))
}

// receive returns the next frame.
func (c *client) receive() (reply, error) {
	frame, err := c.readFrame()
	if err != nil {
		return reply{}, err
	}
	if len(frame) < 16 {
		return reply{}, fmt.Errorf("reply of %d bytes", len(frame))
	}
	return reply{
		xid:  int32(binary.BigEndian.Uint32(frame)),
		zxid: int64(binary.BigEndian.Uint64(frame[4:])),
		err:  int32(binary.BigEndian.Uint32(frame[12:])),
		body: frame[16:],
	}, nil
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
