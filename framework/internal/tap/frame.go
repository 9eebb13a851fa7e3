package tap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/docent-go/docent/internal/proto"
)

// Offsets in a handshake's frame: of the latest transaction id that the client has seen, and of the
// session id.
const (
	greetingZxid = proto.LengthSize + 4
	greetingID   = greetingZxid + 8 + 4
)

// oldGreeting is the length of a handshake without its read-only flag.
const oldGreeting = 4 + 8 + 4 + 8 + proto.LengthSize + proto.PasswordSize

// readString returns the jute string at the start of b.
func readString(b []byte) (s []byte, ok bool) {
	if len(b) < proto.LengthSize {
		return nil, false
	}
	n := int32(binary.BigEndian.Uint32(b))
	if n < 0 || int(n) > len(b)-proto.LengthSize {
		return nil, false
	}
	return b[proto.LengthSize : proto.LengthSize+n], true
}

func int32At(b []byte, i int) int32 { return int32(binary.BigEndian.Uint32(b[i:])) }
func int64At(b []byte, i int) int64 { return int64(binary.BigEndian.Uint64(b[i:])) }

// A reply is a server's reply to a request.
type reply struct {
	xid   int32
	zxid  int64 // the number that the ensemble gave a write
	code  proto.Code
	body  []byte
	fault error // why there is no body; else nil
}

// replyOf returns the reply in a frame without its length; the frame has at least a head.
func replyOf(frame []byte) reply {
	return reply{xid: int32At(frame, 0), zxid: int64At(frame, 4), code: proto.Code(int32At(frame, 12)), body: frame[proto.ReplyHeadSize:]}
}

// readFrame reads one frame of at most that many bytes, without its length.
func readFrame(conn io.Reader, most int) ([]byte, error) {
	frame, err := proto.ReadFrame(conn, most)
	if errors.Is(err, proto.ErrMalformed) {
		return nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	return frame, err
}
