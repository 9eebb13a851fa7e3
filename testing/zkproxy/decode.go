package zkproxy

import (
	"bytes"
	"time"

	"github.com/docent-go/docent/testing/fault"
)

const (
	opcodeCreate          = 1
	opcodeDelete          = 2
	opcodeExists          = 3
	opcodeSetData         = 5
	opcodeCheck           = 13
	opcodeMulti           = 14
	opcodeCreate2         = 15
	opcodeCreateContainer = 19
	opcodeCreateTTL       = 21

	xidEvent = -1

	replyHeader = 16 // bytes: xid, zxid, error

	// sessionOffset is where the session id stands in an answer to the handshake,
	// behind its protocol version and timeout.
	sessionOffset = 8
)

// decodeConnect reads the session id that a handshake asks for.
func decodeConnect(body []byte) fault.Frame {
	r := reader{rest: body}
	r.int32() // protocol version
	r.int64() // last zxid seen
	r.int32() // timeout
	return fault.Frame{Op: fault.Connect, Session: r.int64()}
}

// decodeAnswer reads the session from the server's answer to the handshake. It
// reports false if there is none: the session has expired, or this is no answer.
func decodeAnswer(body []byte) (Session, bool) {
	r := reader{rest: body}
	r.int32() // protocol version
	s := Session{
		Timeout:  time.Duration(r.int32()) * time.Millisecond,
		ID:       r.int64(),
		Password: bytes.Clone(r.buffer()),
	}
	return s, !r.failed && s.ID != 0
}

// decodeRequest reads what rules match from a request. It reports false if the
// frame is too short for a request.
func decodeRequest(body []byte, session int64) (fault.Frame, bool) {
	r := reader{rest: body}
	f := fault.Frame{Session: session, Xid: r.int32()}
	opcode := r.int32()
	if r.failed {
		return f, false
	}
	f.Op = fault.OpOf(opcode)
	switch f.Op {
	case fault.Multi:
		f.Parts = decodeParts(&r)
	case fault.Ping, fault.CloseSession, fault.SetAuth, fault.SetWatches, fault.Other:
	default:
		f.Path = r.string()
	}
	return f, true
}

// decodeParts reads the operations of a multi, up to the first that it doesn't
// know: what follows that can't be found.
func decodeParts(r *reader) []fault.Part {
	var parts []fault.Part
	for {
		opcode, done := r.int32(), r.bool()
		r.int32() // error, unused in requests
		if r.failed || done {
			return parts
		}
		path := r.string()
		if r.failed {
			return parts
		}
		parts = append(parts, fault.Part{Op: fault.OpOf(opcode), Path: path})
		if !skipPart(r, opcode) {
			return parts
		}
	}
}

// skipPart takes what follows the path of an operation in a multi.
func skipPart(r *reader, opcode int32) bool {
	switch opcode {
	case opcodeCreate, opcodeCreate2, opcodeCreateContainer, opcodeCreateTTL:
		r.buffer()
		r.skipACL()
		r.int32() // flags
		if opcode == opcodeCreateTTL {
			r.int64()
		}
	case opcodeSetData:
		r.buffer()
		r.int32() // version
	case opcodeDelete, opcodeCheck:
		r.int32() // version
	default:
		return false
	}
	return !r.failed
}

// decodeReply reads a frame that the server has sent: the xid of the request that
// it answers, or the event that it is.
func decodeReply(body []byte, session int64) (fault.Frame, bool) {
	r := reader{rest: body}
	f := fault.Frame{Session: session, Xid: r.int32()}
	r.int64() // zxid
	r.int32() // error
	if f.Xid == xidEvent {
		f.Op = fault.Event
		r.int32() // type
		r.int32() // state
		f.Path = r.string()
	}
	return f, !r.failed
}
