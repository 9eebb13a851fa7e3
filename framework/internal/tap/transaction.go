package tap

import "github.com/docent-go/docent/internal/proto"

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
