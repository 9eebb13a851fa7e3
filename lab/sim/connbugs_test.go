package sim_test

import (
	"encoding/binary"
	"net"
	"sync"

	"github.com/docent-go/docent/internal/proto"
)

// The bugs of this file are connections that change what passes.

// A frames connection changes what is received, one frame at a time.
type frames struct {
	net.Conn
	change func(body []byte) []byte // returns what to read in the place of the frame's body; nil is no frame
	unread []byte                   // used by Read alone
}

func (c *frames) Read(p []byte) (int, error) {
	for len(c.unread) == 0 {
		body, err := proto.ReadFrame(c.Conn, 1<<20)
		if err != nil {
			return 0, err
		}
		if body = c.change(body); body != nil {
			c.unread = append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
		}
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// request returns the number and the operation of a request, and the decoder of its fields. The client
// writes a frame at once.
func request(frame []byte) (xid int32, op proto.Opcode, d proto.Decoder) {
	d = proto.NewDecoder(frame[min(proto.LengthSize, len(frame)):])
	return d.Int32(), proto.Opcode(d.Int32()), d
}

// newFlatterer doubles the session timeout in the answer to the handshake.
func newFlatterer(c net.Conn) net.Conn {
	greeted := false
	return &frames{Conn: c, change: func(body []byte) []byte {
		if d := proto.NewDecoder(body); !greeted {
			greeted = true
			if reply := d.ConnectReply(); d.Err() == nil {
				reply.Timeout *= 2
				return reply.Frame()[proto.LengthSize:]
			}
		}
		return body
	}}
}

// A silent connection loses the request that closes a session.
type silent struct{ net.Conn }

func (c *silent) Write(p []byte) (int, error) {
	if _, op, _ := request(p); op == proto.OpCloseSession {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// A mute connection loses all that is sent once it has passed a number of bytes.
type mute struct {
	net.Conn
	sent int
}

func (c *mute) Write(p []byte) (int, error) {
	const most = 2000
	if c.sent += len(p); c.sent > most {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// A credulous connection sends a sync in place of each heartbeat, and answers the heartbeat with
// what the sync is answered: so a sync counts as a proof of the session.
type credulous struct {
	*frames

	mu    sync.Mutex
	syncs map[int32]bool // guarded by mu: the xids of those that are not answered
}

func newCredulous(c net.Conn) net.Conn {
	made := &credulous{syncs: map[int32]bool{}}
	made.frames = &frames{Conn: c, change: made.answer}
	return made
}

func (c *credulous) Write(p []byte) (int, error) {
	xid, op, body := request(p)
	if op != proto.OpMulti || !beats(body) {
		return c.Conn.Write(p)
	}
	c.mu.Lock()
	c.syncs[xid] = true
	c.mu.Unlock()
	if _, err := c.Conn.Write(proto.RequestFrame(xid, proto.OpSync, proto.AppendString(nil, "/"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// beats reports whether the transaction is of one check alone.
func beats(d proto.Decoder) bool {
	first, _, _ := d.OpHead()
	d.Path()
	d.Int32() // the version
	_, over, _ := d.OpHead()
	return first == proto.OpCheck && over && d.End() == nil
}

// answer returns the body, or the answer to a heartbeat in place of that to its sync: the znode
// of the check does not exist.
func (c *credulous) answer(body []byte) []byte {
	d := proto.NewDecoder(body)
	head := d.ReplyHead()
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.Err() != nil || !c.syncs[head.Xid] {
		return body
	}
	delete(c.syncs, head.Xid)
	e := proto.NewEncoder()
	e.ReplyHead(head.Xid, head.Zxid, head.Code)
	e.OpHead(proto.OpError, false, proto.CodeNoNode)
	e.Int32(int32(proto.CodeNoNode))
	e.OpHead(proto.OpError, true, -1)
	return e.Body()
}
