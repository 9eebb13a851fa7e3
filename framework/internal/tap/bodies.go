package tap

import "fmt"

// checkBody returns an error unless the wire client can decode the body of a reply without
// an error code. A body that it does not decode may hold anything.
func checkBody(opcode int32, body []byte) error {
	s := skimmer{rest: body}
	switch opcode {
	case opSync:
		s.text()
	case opCreate:
		s.text()
	case opCreate2, opCreateContainer, opCreateTTL:
		s.text()
		s.skip(statSize)
	case opExists, opSetData, opSetACL:
		s.skip(statSize)
	case opGetData:
		s.buffer()
		s.skip(statSize)
	case opGetACL:
		s.list(s.aclEntry)
		s.skip(statSize)
	case opGetChildren2:
		s.list(s.text)
		s.skip(statSize)
	case opMulti:
		s.results()
	}
	if s.bad {
		return fmt.Errorf("%w: a reply of %d bytes to opcode %d", ErrProtocol, replyHead+len(body), opcode)
	}
	return nil
}

// Kinds of watch events that are about a znode: created, deleted, data and children changed.
// Others are the wire client's own, about its session: none may come from a server.
const (
	firstEvent = 1
	lastEvent  = 4
)

// checkEvent checks the body of a watch event, and reports whether the wire client is to
// read it.
func checkEvent(body []byte) (pass bool, err error) {
	s := skimmer{rest: body}
	kind := s.number()
	s.number() // the state of the connection
	s.text()
	if s.bad {
		return false, fmt.Errorf("%w: a watch event of %d bytes", ErrProtocol, replyHead+len(body))
	}
	return kind >= firstEvent && kind <= lastEvent, nil
}

// A skimmer passes over the fields of a body. Once one of them does not fit it is bad, and
// stays so.
type skimmer struct {
	rest []byte
	bad  bool
}

func (s *skimmer) skip(n int) {
	if s.bad || n < 0 || n > len(s.rest) {
		s.bad = true
		return
	}
	s.rest = s.rest[n:]
}

func (s *skimmer) number() int32 {
	field := s.rest
	s.skip(4)
	if s.bad {
		return 0
	}
	return int32At(field, 0)
}

func (s *skimmer) text() { s.skip(int(s.number())) }

// buffer passes over data, of which there may be none.
func (s *skimmer) buffer() {
	if n := s.number(); n != nullBuffer {
		s.skip(int(n))
	}
}

// list passes over a list. The wire client allocates as many elements as it announces, so
// each has to be there.
func (s *skimmer) list(element func()) {
	count := s.number()
	if count < 0 {
		s.bad = true
	}
	for ; count > 0 && !s.bad; count-- {
		element()
	}
}

func (s *skimmer) aclEntry() {
	s.skip(4) // permissions
	s.text()
	s.text()
}

// results passes over the results of a transaction: each has a head, and the last is a head
// that says so.
func (s *skimmer) results() {
	for !s.bad {
		kind, flags := s.number(), s.rest
		s.skip(multiOpHead - 4)
		if s.bad || flags[0] != 0 {
			return
		}
		switch kind {
		case opError:
			s.skip(4)
		case opCreate:
			s.text()
		case opSetData:
			s.skip(statSize)
		case opCheck, opDelete:
		default:
			s.bad = true
		}
	}
}
