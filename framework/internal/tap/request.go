package tap

import (
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// A request is a request that waits for its reply.
type request struct {
	xid       int32
	opcode    proto.Opcode
	sent      time.Time
	following *Following // may be nil
	question  *question  // of the Tap's own; else nil
}

// followTransactionLocked records a transaction that is being sent. The path of its first operation
// identifies it. It needs mu.
func (t *Tap) followTransactionLocked(p []byte, rq *request) {
	const first = proto.LengthSize + proto.RequestHeadSize + proto.OpHeadSize
	if len(p) < first {
		return
	}
	path, _, ok := readString(p[first:])
	if !ok {
		return
	}
	rq.following = t.sendsLocked(true, path)
}
