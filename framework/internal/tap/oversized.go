package tap

import (
	"encoding/binary"

	"github.com/docent-go/docent/internal/proto"
)

// Codes that the wire client reads in place of a reply that is longer than it accepts. No server
// sends them.
const (
	// CodeTooLarge is the code of a request that has no effect: a read.
	CodeTooLarge = -1000001
	// CodeCut is the code of a request that may have had its effect.
	CodeCut = -1000002
)

// cutReply makes a whole frame of the head of a reply to a request with the opcode. It keeps an
// error code of the server.
func cutReply(frame []byte, opcode proto.Opcode) []byte {
	binary.BigEndian.PutUint32(frame, proto.ReplyHeadSize)
	if code := frame[proto.LengthSize+proto.ReplyHeadSize-4:]; int32At(code, 0) == 0 {
		cut := int32(CodeCut)
		if readsOnly(opcode) {
			cut = CodeTooLarge
		}
		binary.BigEndian.PutUint32(code, uint32(cut))
	}
	return frame
}

func readsOnly(opcode proto.Opcode) bool {
	switch opcode {
	case proto.OpExists, proto.OpGetData, proto.OpGetACL, proto.OpGetChildren2, proto.OpSync:
		return true
	}
	return false
}
