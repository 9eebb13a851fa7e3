package zkserver_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// A side is one of two servers that are compared. Its answers are rendered as text. There, zxids
// and session ids are replaced by the order of their first appearance, and times by whether they
// are set.
type side struct {
	name    string
	dial    func(member int) (net.Conn, error)
	clients []*client
	labels  map[int64]int
	history []string // of the last batches, to an ensemble
	zxids   []int64  // of the replies so far, for setWatches
}

// connect opens a session, or resumes one.
func (s *side) connect(member int, timeout time.Duration, session int64, password []byte) (*client, error) {
	nc, err := s.dial(member)
	if err != nil {
		return nil, err
	}
	return handshake(nc, timeout, 0, session, password)
}

// resume resumes a session. The later requests have to be answered within the time of a batch.
func (s *side) resume(member int, timeout time.Duration, old *client) (*client, error) {
	c, err := s.connect(member, timeout, old.session, old.password)
	if err != nil {
		return nil, err
	}
	return c, c.nc.SetDeadline(time.Now().Add(30 * time.Second))
}

func (s *side) label(kind string, v int64) string {
	if v == 0 {
		return "0"
	}
	n, known := s.labels[v]
	if !known {
		n = len(s.labels)
		s.labels[v] = n
	}
	return fmt.Sprintf("%s%d", kind, n)
}

// A cursor takes a reply apart.
type cursor struct {
	b    []byte
	side *side
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		panic(fmt.Sprintf("reply is %d bytes short", n-len(c.b)))
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) int32() int32 { return int32(binary.BigEndian.Uint32(c.take(4))) }
func (c *cursor) int64() int64 { return int64(binary.BigEndian.Uint64(c.take(8))) }

func (c *cursor) bytes() string {
	n := c.int32()
	if n == -1 {
		return "null"
	}
	return fmt.Sprintf("%q", c.take(int(n)))
}

// sorted renders a vector of strings: the order of children is undefined.
func (c *cursor) sorted() string {
	list := make([]string, c.int32())
	for i := range list {
		list[i] = c.bytes()
	}
	slices.Sort(list)
	return "[" + strings.Join(list, " ") + "]"
}

func (c *cursor) time() string {
	if c.int64() == 0 {
		return "0"
	}
	return "t"
}

func (c *cursor) stat() string {
	czxid, mzxid := c.side.label("z", c.int64()), c.side.label("z", c.int64())
	ctime, mtime := c.time(), c.time()
	version, cversion, aversion := c.int32(), c.int32(), c.int32()
	owner := c.int64()
	ownerText := fmt.Sprintf("%#x", uint64(owner))
	if owner > 0 {
		ownerText = c.side.label("s", owner)
	}
	length, children := c.int32(), c.int32()
	return fmt.Sprintf("{c%s m%s %s %s v%d cv%d av%d o%s l%d n%d p%s}", czxid, mzxid, ctime, mtime,
		version, cversion, aversion, ownerText, length, children, c.side.label("z", c.int64()))
}

// acl renders an access list. ZooKeeper keeps a client's identities in a hash set, so
// those that "auth" has expanded to come in any order.
func (c *cursor) acl() string {
	list := make([]string, c.int32())
	for i := range list {
		list[i] = fmt.Sprintf("(%d %s:%s)", c.int32(), c.bytes(), c.bytes())
	}
	slices.Sort(list)
	return strings.Join(list, "")
}

// results renders the results of a multi or multiRead.
func (c *cursor) results() string {
	var b strings.Builder
	for {
		op, done, err := c.int32(), c.take(1)[0] != 0, c.int32()
		fmt.Fprintf(&b, " %d,%v,%d:", op, done, err)
		switch {
		case done:
			return b.String()
		case op == create:
			b.WriteString(c.bytes())
		case op == create2:
			b.WriteString(c.bytes() + c.stat())
		case op == setData:
			b.WriteString(c.stat())
		case op == getData:
			b.WriteString(c.bytes() + c.stat())
		case op == getChildren:
			b.WriteString(c.sorted())
		case op == -1:
			fmt.Fprintf(&b, "%d", c.int32())
		}
	}
}

// render returns a reply to op as text.
func (s *side) render(op int32, r reply) (text string) {
	c := &cursor{b: r.body, side: s}
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprintf("op %d: %v: % x", op, p, r.body)
		}
	}()
	if r.xid == -1 {
		return fmt.Sprintf("event zxid %s type %d state %d path %s rest %d", s.label("z", r.zxid), c.int32(), c.int32(), c.bytes(), len(c.b))
	}
	head := fmt.Sprintf("op %d xid %d zxid %s err %d ", op, r.xid, s.label("z", r.zxid), r.err)
	s.zxids = append(s.zxids, r.zxid)
	if r.err != 0 {
		return head + fmt.Sprintf("rest %d", len(c.b))
	}
	switch op {
	case create, syncOp:
		head += c.bytes()
	case create2, createContainer, createTTL:
		head += c.bytes() + c.stat()
	case exists, setData, setACL:
		head += c.stat()
	case getData:
		head += c.bytes() + c.stat()
	case getChildren, getEphemerals:
		head += c.sorted()
	case getChildren2:
		head += c.sorted() + c.stat()
	case getACL:
		head += c.acl() + c.stat()
	case countChildren, addWatch:
		head += fmt.Sprint(c.int32())
	case multi, multiRead:
		head += c.results()
	}
	return head + fmt.Sprintf(" rest %d", len(c.b))
}
