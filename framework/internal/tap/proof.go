package tap

// Error codes that the leader gives when it turns a write into a transaction. The
// quorum commits the failure as it commits a success.
const (
	codeOK                = 0
	codeInconsistency     = -2 // of an operation behind the failed one of a transaction
	codeBadArguments      = -8
	codeNoNode            = -101
	codeNoAuth            = -102
	codeBadVersion        = -103
	codeNoChildrenAllowed = -108
	codeNodeExists        = -110
	codeNotEmpty          = -111
	codeInvalidACL        = -114
	codeQuotaExceeded     = -125
)

// codeNotReadOnly is the code of what a server refuses that has lost its quorum.
const codeNotReadOnly = -119

// codeSessionExpired is the code of a session that the leader doesn't know, or no more.
const codeSessionExpired = -112

// multiResultError is the length of a result that is an error: its head and a code.
const multiResultError = multiOpHead + 4

// proposed reports whether the leader proposes the request to the quorum, so that
// its answer follows a commit. A sync is answered from the leader's memory.
func proposed(opcode int32) bool {
	switch opcode {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opSetData, opSetACL, opMulti, opReconfig:
		return true
	}
	return false
}

// committed reports whether only the leader's commit gives the code. A server alone
// answers a write with other codes: it is read-only, sheds load, wants another
// credential, or doesn't know the request or the session.
func committed(code int32) bool {
	switch code {
	case codeOK, codeBadArguments, codeNoNode, codeNoAuth, codeBadVersion, codeNoChildrenAllowed,
		codeNodeExists, codeNotEmpty, codeInvalidACL, codeQuotaExceeded:
		return true
	}
	return false
}

// proves reports whether the reply to a request proves that a quorum followed the
// leader, and that the leader had the session, after the request was sent. What is
// not known to prove it doesn't. A server that refuses a write by an ACL on its own
// (enableEagerACLCheck) gives no zxid.
func proves(opcode int32, rp reply) bool {
	if !proposed(opcode) || rp.zxid <= 0 || !committed(rp.code) {
		return false
	}
	return opcode != opMulti || transactionProves(rp.body)
}

// transactionProves reports the same of a transaction's results. Either all are
// errors or none is. The leader commits the failure of a session that it doesn't
// know as well, with that code in the results.
func transactionProves(results []byte) bool {
	for len(results) >= multiOpHead {
		if done := results[4] != 0; done || int32At(results, 0) != opError {
			return true
		}
		if len(results) < multiResultError {
			return false
		}
		if code := int32At(results, multiOpHead); code != codeInconsistency && !committed(code) {
			return false
		}
		results = results[multiResultError:]
	}
	return false
}
