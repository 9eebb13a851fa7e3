package zkproxy

import (
	"bytes"
	"time"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
)

// decodeConnect reads the session id that a handshake asks for.
func decodeConnect(body []byte) fault.Frame {
	d := proto.NewDecoder(body)
	return fault.Frame{Op: fault.Connect, Session: d.ConnectRequest().Session}
}

// decodeAnswer reads the session from the server's answer to the handshake. It
// reports false if there is none: the session has expired, or this is no answer.
func decodeAnswer(body []byte) (Session, bool) {
	d := proto.NewDecoder(body)
	reply := d.ConnectReply()
	s := Session{
		Timeout:  time.Duration(reply.Timeout) * time.Millisecond,
		ID:       reply.Session,
		Password: bytes.Clone(reply.Password),
	}
	return s, d.Err() == nil && s.ID != 0
}

// decodeRequest reads what rules match from a request. It reports false if the
// frame is too short for a request.
func decodeRequest(body []byte, session int64) (fault.Frame, bool) {
	d := proto.NewDecoder(body)
	f := fault.Frame{Session: session, Xid: d.Int32()}
	opcode := d.Int32()
	if d.Err() != nil {
		return f, false
	}
	f.Op = fault.OpOf(opcode)
	switch f.Op {
	case fault.Multi, fault.MultiRead:
		f.Parts = decodeParts(&d)
	case fault.Ping, fault.CloseSession, fault.SetAuth, fault.SetWatches, fault.Other:
	default:
		f.Path = d.String()
	}
	return f, true
}

// decodeParts reads the operations of a multi or a multiRead, up to the first that it doesn't
// know: what follows that can't be found.
func decodeParts(d *proto.Decoder) []fault.Part {
	var parts []fault.Part
	for {
		op, done, _ := d.OpHead()
		if d.Err() != nil || done {
			return parts
		}
		path := d.String()
		if d.Err() != nil {
			return parts
		}
		parts = append(parts, fault.Part{Op: fault.OpOf(int32(op)), Path: path})
		if !skipPart(d, op) {
			return parts
		}
	}
}

// skipPart takes what follows the path of an operation in a multi.
func skipPart(d *proto.Decoder, op proto.Opcode) bool {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		d.Bytes()
		skipACL(d)
		d.Int32() // flags
		if op == proto.OpCreateTTL {
			d.Int64()
		}
	case proto.OpSetData:
		d.Bytes()
		d.Int32() // version
	case proto.OpDelete, proto.OpCheck:
		d.Int32() // version
	case proto.OpGetData, proto.OpGetChildren:
		d.Bool() // watch
	default:
		return false
	}
	return d.Err() == nil
}

// decodeReply reads a frame that the server has sent: the xid of the request that
// it answers, or the event that it is.
func decodeReply(body []byte, session int64) (fault.Frame, bool) {
	d := proto.NewDecoder(body)
	f := fault.Frame{Session: session, Xid: d.ReplyHead().Xid}
	if f.Xid == proto.XidEvent {
		f.Op = fault.Event
		d.Int32() // type
		d.Int32() // state
		f.Path = d.String()
	}
	return f, d.Err() == nil
}

// skipACL takes a list of access rights.
func skipACL(d *proto.Decoder) {
	for n := d.Int32(); n > 0 && d.Err() == nil; n-- {
		d.Int32()
		d.Bytes()
		d.Bytes()
	}
}
