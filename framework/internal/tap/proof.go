package tap

import "github.com/docent-go/docent/internal/proto"

// proposed reports whether the leader proposes the request to the quorum, so that
// its answer follows a commit. A sync is answered from the leader's memory.
func proposed(opcode proto.Opcode) bool {
	switch opcode {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete, proto.OpSetData, proto.OpSetACL, proto.OpMulti, proto.OpReconfig:
		return true
	}
	return false
}

// committed reports whether only the leader's commit gives the code. A server alone
// answers a write with other codes: it is read-only, sheds load, wants another
// credential, or doesn't know the request or the session.
func committed(code proto.Code) bool {
	switch code {
	case proto.CodeOK, proto.CodeBadArguments, proto.CodeNoNode, proto.CodeNoAuth, proto.CodeBadVersion, proto.CodeNoChildrenForEphemerals,
		proto.CodeNodeExists, proto.CodeNotEmpty, proto.CodeInvalidACL, proto.CodeQuotaExceeded:
		return true
	}
	return false
}

// proves reports whether the reply to a request proves that a quorum followed the
// leader, and that the leader had the session, after the request was sent. What is
// not known to prove it doesn't. A server that refuses a write by an ACL on its own
// (enableEagerACLCheck) gives no zxid.
func proves(opcode proto.Opcode, rp reply) bool {
	if !proposed(opcode) || rp.zxid <= 0 || !committed(rp.code) {
		return false
	}
	return opcode != proto.OpMulti || transactionProves(rp.body)
}

// transactionProves reports the same of a transaction's results. Either all are
// errors or none is. The leader commits the failure of a session that it doesn't
// know as well, with that code in the results.
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
