package tap

import "encoding/binary"

// Opcodes of the ZooKeeper protocol that a Tap treats specially.
const (
	opError           = -1 // only among the results of a transaction
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opGetACL          = 6
	opSetACL          = 7
	opSync            = 9
	opPing            = 11
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opReconfig        = 16
	opCreateContainer = 19
	opCreateTTL       = 21
	opSetAuth         = 100
)

// Transaction ids of watch events and of pings; a request's is not negative.
const (
	xidEvent = -1
	xidPing  = -2
)

// errAuthRequired is the code of a server that wants another identity, and closes the
// connection.
const errAuthRequired = -124

const (
	lengthSize   = 4
	requestHead  = 8  // xid, opcode
	replyHead    = 16 // xid, zxid, error
	greetingHead = 16 // protocol version, timeout, session id
	nullBuffer   = -1 // the length of data that is null
	statSize     = 68
	passwordSize = 16
	greetingID   = lengthSize + 4 + 8 + 4                    // where a handshake has the session id
	oldGreeting  = 4 + 8 + 4 + 8 + lengthSize + passwordSize // protocol version, zxid, timeout, session id, password
)

// flagContainer is the create flag of a container znode.
const flagContainer = 4

// readString returns the jute string at the start of b and what follows it.
func readString(b []byte) (s, rest []byte, ok bool) {
	if len(b) < lengthSize {
		return nil, nil, false
	}
	n := int32(binary.BigEndian.Uint32(b))
	if n < 0 || int(n) > len(b)-lengthSize {
		return nil, nil, false
	}
	return b[lengthSize : lengthSize+n], b[lengthSize+n:], true
}

func int32At(b []byte, i int) int32 { return int32(binary.BigEndian.Uint32(b[i:])) }
func int64At(b []byte, i int) int64 { return int64(binary.BigEndian.Uint64(b[i:])) }
