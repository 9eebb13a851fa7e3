package zkserver

import (
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// errorReply returns a reply without a body: an error, or the success of an
// operation that returns nothing.
func errorReply(xid int32, zxid int64, err proto.Code) []byte {
	e := proto.NewEncoder()
	e.ReplyHead(xid, zxid, err)
	return e.Frame()
}

// writeReply returns the reply to a write that has succeeded.
func writeReply(r *request, zxid int64, c *change, after proto.Stat) []byte {
	e := proto.NewEncoder()
	e.ReplyHead(r.xid, zxid, proto.CodeOK)
	putResult(e, r.op, c, after)
	return e.Frame()
}

// putResult appends what a write that has succeeded returns.
func putResult(e *proto.Encoder, op proto.Opcode, c *change, after proto.Stat) {
	if isCreate(op) {
		e.String(c.path)
	}
	if isCreate(op) && op != proto.OpCreate || op == proto.OpSetData || op == proto.OpSetACL {
		e.Stat(after)
	}
}

// syncReply returns the reply to a sync.
func syncReply(r *request, zxid int64) []byte {
	e := proto.NewEncoder()
	e.ReplyHead(r.xid, zxid, proto.CodeOK)
	e.String(r.path)
	return e.Frame()
}

// multiReply returns the reply to a multi that has succeeded. A container or TTL
// node answers as a create2 does, and a create2 as a create unless the server is strict.
func multiReply(r *request, zxid int64, changes []change, after []proto.Stat, strict bool) []byte {
	e := proto.NewEncoder()
	e.ReplyHead(r.xid, zxid, proto.CodeOK)
	for i, op := range r.ops {
		kind := op.op
		if isCreate(kind) && (kind != proto.OpCreate || strict && op.asked == proto.OpCreate2) {
			kind = proto.OpCreate2
		}
		e.OpHead(kind, false, proto.CodeOK)
		putResult(e, kind, &changes[i], after[i])
	}
	e.OpHead(proto.OpError, true, -1)
	return e.Frame()
}

// multiFailure returns the reply to a multi whose operation number failed didn't
// succeed. The header says success; those before say so too, though they were not
// carried out, and those after say that they were not tried.
func multiFailure(r *request, zxid int64, failed int, failure proto.Code) []byte {
	e := proto.NewEncoder()
	e.ReplyHead(r.xid, zxid, proto.CodeOK)
	for i := range r.ops {
		err := proto.CodeOK
		switch {
		case i == failed:
			err = failure
		case i > failed:
			err = proto.CodeRuntimeInconsistency
		}
		e.OpHead(proto.OpError, false, err)
		e.Int32(int32(err))
	}
	e.OpHead(proto.OpError, true, -1)
	return e.Frame()
}

// connectReply returns the answer to a handshake; a nil session refuses it.
func connectReply(r *proto.ConnectRequest, sess *session, readOnly bool) []byte {
	answer := proto.ConnectReply{Password: make([]byte, proto.PasswordSize), ReadOnly: readOnly, Old: r.Old}
	if sess != nil {
		answer.Timeout, answer.Session, answer.Password = int32(sess.timeout/time.Millisecond), sess.id, sess.password
	}
	return answer.Frame()
}

// eventFrame returns a watch event.
func eventFrame(zxid int64, path string, event eventType) []byte {
	const syncConnected = 3
	e := proto.NewEncoder()
	e.ReplyHead(proto.XidEvent, zxid, proto.CodeOK)
	e.Int32(int32(event))
	e.Int32(syncConnected)
	e.String(path)
	return e.Frame()
}
