package wire

import "github.com/docent-go/docent/internal/proto"

// Proposed reports whether the leader proposes the request to the quorum, so that its reply follows
// a commit. The reply to a sync comes from the leader's memory.
func Proposed(opcode proto.Opcode) bool {
	switch opcode {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete, proto.OpSetData, proto.OpSetACL, proto.OpMulti, proto.OpReconfig:
		return true
	}
	return false
}

// committed reports whether only the leader's commit returns the code. A server on its own replies
// to a write with other codes: it is read-only, sheds load, requires another credential, or doesn't
// know the request or the session.
func committed(code proto.Code) bool {
	switch code {
	case proto.CodeOK, proto.CodeBadArguments, proto.CodeNoNode, proto.CodeNoAuth, proto.CodeBadVersion, proto.CodeNoChildrenForEphemerals,
		proto.CodeNodeExists, proto.CodeNotEmpty, proto.CodeInvalidACL, proto.CodeQuotaExceeded:
		return true
	}
	return false
}

// proves reports whether the reply to a request is a proof. A proof shows that, after the request
// was sent, a quorum followed the leader and the leader had the session. A reply of an unknown kind
// proves nothing. If a server refuses a write by an ACL on its own (enableEagerACLCheck), its reply
// has no zxid.
func proves(opcode proto.Opcode, head proto.ReplyHead, body []byte) bool {
	if !Proposed(opcode) || head.Zxid <= 0 || !committed(head.Code) {
		return false
	}
	return opcode != proto.OpMulti || transactionProves(body)
}

// transactionProves reports whether a transaction's results are a proof. Either all are errors or
// none is. If the leader doesn't know the session, it commits that failure as well, with that code
// in the results.
func transactionProves(results []byte) bool {
	d := proto.NewDecoder(results)
	for {
		op, done, _ := d.OpHead()
		if done || op != proto.OpError {
			return d.Err() == nil
		}
		code := proto.Code(d.Int32())
		if d.Err() != nil || code != proto.CodeRuntimeInconsistency && !committed(code) {
			return false
		}
	}
}
