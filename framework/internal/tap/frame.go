package tap

import (
	"encoding/binary"

	"github.com/docent-go/docent/internal/proto"
)

// greetingID is the offset of the session id in a handshake's frame.
const greetingID = proto.LengthSize + 4 + 8 + 4

// oldGreeting is the length of a handshake without its read-only flag.
const oldGreeting = 4 + 8 + 4 + 8 + proto.LengthSize + proto.PasswordSize

// readString returns the jute string at the start of b and the rest of b.
func readString(b []byte) (s, rest []byte, ok bool) {
	if len(b) < proto.LengthSize {
		return nil, nil, false
	}
	n := int32(binary.BigEndian.Uint32(b))
	if n < 0 || int(n) > len(b)-proto.LengthSize {
		return nil, nil, false
	}
	return b[proto.LengthSize : proto.LengthSize+n], b[proto.LengthSize+n:], true
}

func int32At(b []byte, i int) int32 { return int32(binary.BigEndian.Uint32(b[i:])) }
func int64At(b []byte, i int) int64 { return int64(binary.BigEndian.Uint64(b[i:])) }
