package tap

import (
	"bytes"
	"fmt"

	"github.com/docent-go/docent/internal/proto"
)

// checkBody returns an error unless the body of a reply without an error code can be decoded. The body
// of another opcode may hold anything: its reader checks it.
func checkBody(opcode proto.Opcode, body []byte) error {
	s := skimmer{proto.NewDecoder(body)}
	switch opcode {
	case proto.OpSync:
		s.text()
	case proto.OpCreate:
		s.text()
	case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		s.text()
		s.Take(proto.StatSize)
	case proto.OpExists, proto.OpSetData, proto.OpSetACL:
		s.Take(proto.StatSize)
	case proto.OpGetData:
		s.Bytes()
		s.Take(proto.StatSize)
	case proto.OpGetACL:
		s.list(s.aclEntry)
		s.Take(proto.StatSize)
	case proto.OpGetChildren2:
		s.list(s.name)
		s.Take(proto.StatSize)
	case proto.OpMulti:
		s.results()
	}
	if s.bad() {
		return fmt.Errorf("%w: a reply of %d bytes to opcode %d", ErrProtocol, proto.ReplyHeadSize+len(body), opcode)
	}
	return nil
}

// Kinds of watch events about a znode: created, deleted, data and children changed. Other kinds are
// about the session, and mean nothing here.
const (
	firstEvent = 1
	lastEvent  = 4
)

// parseEvent returns a watch event's kind and path; the path is "" if it is about no znode.
func parseEvent(body []byte) (kind int32, path string, err error) {
	s := skimmer{proto.NewDecoder(body)}
	kind = s.Int32()
	s.Int32() // the state of the connection
	p := s.Text()
	switch {
	case s.bad():
		return 0, "", fmt.Errorf("%w: a watch event of %d bytes", ErrProtocol, proto.ReplyHeadSize+len(body))
	case kind < firstEvent || kind > lastEvent:
		return 0, "", nil
	case !isPath(p):
		return 0, "", fmt.Errorf("%w: a watch event of the path %.40q", ErrProtocol, p)
	}
	return kind, string(p), nil
}

// isPath reports whether b is "/", or a slash before each of its elements, none of which is empty.
// Whoever walks along a path of a server may rely on that.
func isPath(b []byte) bool {
	return len(b) > 0 && b[0] == '/' && (len(b) == 1 || b[len(b)-1] != '/') && !bytes.Contains(b, []byte("//"))
}

// A skimmer skips the fields of a body.
type skimmer struct{ proto.Decoder }

func (s *skimmer) bad() bool { return s.Err() != nil }

// list skips a list.
func (s *skimmer) list(element func()) {
	count := s.Int32()
	if count < 0 {
		s.Fail()
	}
	for ; count > 0 && !s.bad(); count-- {
		element()
	}
}

func (s *skimmer) text() { s.Text() }

// name skips the name of a child. Joined to its parent's path it has to be a path.
func (s *skimmer) name() {
	if name := s.Text(); len(name) == 0 || bytes.IndexByte(name, '/') >= 0 {
		s.Fail()
	}
}

func (s *skimmer) aclEntry() {
	s.Int32() // permissions
	s.text()
	s.text()
}

// results skips the results of a transaction: each has a head, and a last head marks the end.
func (s *skimmer) results() {
	for !s.bad() {
		op, done, _ := s.OpHead()
		if s.bad() || done {
			return
		}
		switch op {
		case proto.OpError:
			s.Int32()
		case proto.OpCreate:
			s.text()
		case proto.OpSetData:
			s.Take(proto.StatSize)
		case proto.OpCheck, proto.OpDelete:
		default:
			s.Fail()
		}
	}
}
