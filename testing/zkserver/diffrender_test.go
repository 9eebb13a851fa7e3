package zkserver_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/internal/proto"
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
	proto.Decoder
	side *side
}

func (c *cursor) bytes() string {
	b := c.Bytes()
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%q", b)
}

// sorted renders a vector of strings: the order of children is undefined.
func (c *cursor) sorted() string { return fmt.Sprintf("%q", slices.Sorted(slices.Values(c.Strings()))) }

func (c *cursor) stat() string {
	s := c.Stat()
	owner := fmt.Sprintf("%#x", uint64(s.EphemeralOwner))
	if s.EphemeralOwner > 0 {
		owner = c.side.label("s", s.EphemeralOwner)
	}
	return fmt.Sprintf("{c%s m%s %v %v v%d cv%d av%d o%s l%d n%d p%s}",
		c.side.label("z", s.Czxid), c.side.label("z", s.Mzxid), s.Ctime != 0, s.Mtime != 0,
		s.Version, s.Cversion, s.Aversion, owner, s.DataLength, s.NumChildren, c.side.label("z", s.Pzxid))
}

// acl renders an access list. ZooKeeper keeps a client's identities in a hash set, so
// those that "auth" has expanded to come in any order.
func (c *cursor) acl() string {
	list := make([]string, c.Count(12))
	for i := range list {
		list[i] = fmt.Sprintf("(%d %s:%s)", c.Int32(), c.bytes(), c.bytes())
	}
	slices.Sort(list)
	return strings.Join(list, "")
}

// results renders the results of a multi or multiRead.
func (c *cursor) results() string {
	var b strings.Builder
	for c.Err() == nil {
		op, done, err := c.OpHead()
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
			fmt.Fprintf(&b, "%d", c.Int32())
		}
	}
	return b.String()
}

// render returns a reply to op as text.
func (s *side) render(op int32, r reply) string {
	c := &cursor{proto.NewDecoder(r.body), s}
	text := s.renderFields(c, op, r)
	if c.Err() != nil {
		return fmt.Sprintf("op %d: %v: % x", op, c.Err(), r.body)
	}
	return text + fmt.Sprintf(" rest %d", len(c.Rest()))
}

func (s *side) renderFields(c *cursor, op int32, r reply) string {
	if r.xid == -1 {
		return fmt.Sprintf("event zxid %s type %d state %d path %s", s.label("z", r.zxid), c.Int32(), c.Int32(), c.bytes())
	}
	head := fmt.Sprintf("op %d xid %d zxid %s err %d ", op, r.xid, s.label("z", r.zxid), r.err)
	s.zxids = append(s.zxids, r.zxid)
	if r.err != 0 {
		return head
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
		head += fmt.Sprint(c.Int32())
	case multi, multiRead:
		head += c.results()
	}
	return head
}
