package tap

// multiOpHead precedes each operation of a transaction: opcode, a flag that says
// whether the list is over, an error code.
const multiOpHead = 4 + 1 + 4

// followTransactionLocked takes note of a transaction that is being sent, which
// is known by the path of its first operation. It needs mu.
func (t *Tap) followTransactionLocked(p []byte, rq *request) {
	const first = lengthSize + requestHead + multiOpHead
	if len(p) < first {
		return
	}
	path, _, ok := readString(p[first:])
	if !ok {
		return
	}
	rq.following = t.sendsLocked(true, path)
}
