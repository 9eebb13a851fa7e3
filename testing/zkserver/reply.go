package zkserver

import "time"

// errorReply returns a reply without a body: an error, or the success of an
// operation that returns nothing.
func errorReply(xid int32, zxid int64, err code) []byte {
	e := newEncoder()
	e.replyHeader(xid, zxid, err)
	return e.frame()
}

// writeReply returns the reply to a write that has succeeded.
func writeReply(r *request, zxid int64, c *change, after stat) []byte {
	e := newEncoder()
	e.replyHeader(r.xid, zxid, codeOK)
	switch r.op {
	case opCreate:
		e.string(c.path)
	case opCreate2, opCreateContainer, opCreateTTL:
		e.string(c.path)
		e.stat(after)
	case opSetData, opSetACL:
		e.stat(after)
	}
	return e.frame()
}

// syncReply returns the reply to a sync.
func syncReply(r *request, zxid int64) []byte {
	e := newEncoder()
	e.replyHeader(r.xid, zxid, codeOK)
	e.string(r.path)
	return e.frame()
}

// multiReply returns the reply to a multi that has succeeded. A container or TTL
// node answers as a create2 does.
func multiReply(r *request, zxid int64, changes []change, after []stat) []byte {
	e := newEncoder()
	e.replyHeader(r.xid, zxid, codeOK)
	for i, op := range r.ops {
		switch op.op {
		case opCreateContainer, opCreateTTL:
			e.multiHeader(opCreate2, false, codeOK)
			e.string(changes[i].path)
			e.stat(after[i])
		case opCreate:
			e.multiHeader(opCreate, false, codeOK)
			e.string(changes[i].path)
		case opSetData:
			e.multiHeader(opSetData, false, codeOK)
			e.stat(after[i])
		default:
			e.multiHeader(op.op, false, codeOK)
		}
	}
	e.multiHeader(opError, true, -1)
	return e.frame()
}

// multiFailure returns the reply to a multi whose operation number failed didn't
// succeed. The header says success; those before say so too, though they were not
// carried out, and those after say that they were not tried.
func multiFailure(r *request, zxid int64, failed int, failure code) []byte {
	e := newEncoder()
	e.replyHeader(r.xid, zxid, codeOK)
	for i := range r.ops {
		err := codeOK
		switch {
		case i == failed:
			err = failure
		case i > failed:
			err = codeRuntimeInconsistency
		}
		e.multiHeader(opError, false, err)
		e.int32(int32(err))
	}
	e.multiHeader(opError, true, -1)
	return e.frame()
}

// connectReply returns the answer to a handshake; a nil session refuses it.
func connectReply(r *connectRequest, sess *session, readOnly bool) []byte {
	e := newEncoder()
	e.int32(0) // protocol version
	if sess == nil {
		e.int32(0)
		e.int64(0)
		e.bytes(make([]byte, passwordSize))
	} else {
		e.int32(int32(sess.timeout / time.Millisecond))
		e.int64(sess.id)
		e.bytes(sess.password)
	}
	if !r.old {
		e.bool(readOnly)
	}
	return e.frame()
}

// eventFrame returns a watch event.
func eventFrame(path string, event eventType) []byte {
	const syncConnected = 3
	e := newEncoder()
	e.replyHeader(-1, -1, codeOK)
	e.int32(int32(event))
	e.int32(syncConnected)
	e.string(path)
	return e.frame()
}
