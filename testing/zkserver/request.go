package zkserver

import (
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
)

// A request is a decoded request, or one operation of a multi. Which fields mean
// something depends on op.
type request struct {
	xid     int32
	op      proto.Opcode
	path    string
	data    []byte
	acl     []acl
	flags   int32 // of a create
	ttl     int64 // of a createTTL, in milliseconds; -1 in every other create
	version int32 // expected; -1 matches every version
	watch   bool
	kind    int32        // watcher type of removeWatches and checkWatches, mode of addWatch
	scheme  string       // of an auth
	ops     []request    // of a multi
	asked   proto.Opcode // of one of them, before its flags decided
	resume  watchResume  // of a setWatches
}

// A watchResume is what a client that reconnects asks to be watched on.
type watchResume struct {
	relativeZxid                int64 // changes after it are told at once
	data, exist, child          []string
	persistent, persistentTrees []string
}

// parseRequest decodes a frame without its length.
func parseRequest(frame []byte) (request, error) {
	d := proto.NewDecoder(frame)
	r := request{xid: d.Int32(), op: proto.Opcode(d.Int32())}
	r.parseBody(&d)
	return r, d.End()
}

func (r *request) parseBody(d *proto.Decoder) {
	switch r.op {
	case proto.OpPing, proto.OpCloseSession, proto.OpWhoAmI:
	case proto.OpMulti, proto.OpMultiRead:
		r.parseOps(d)
	case proto.OpAuth:
		d.Int32() // a type that the server ignores
		r.scheme, r.data = d.String(), d.Bytes()
	case proto.OpSetWatches, proto.OpSetWatches2:
		r.parseResume(d)
	default:
		if !r.parsePlain(d) {
			d.Discard() // it is refused, whatever it holds
		}
	}
}

// parsePlain decodes an operation on one path and reports whether op is one.
func (r *request) parsePlain(d *proto.Decoder) bool {
	switch r.op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		r.path, r.data, r.acl, r.flags = d.Path(), d.Bytes(), takeACLs(d), d.Int32()
		r.ttl = -1
		if r.op == proto.OpCreateTTL {
			r.ttl = d.Int64()
		}
	case proto.OpDelete, proto.OpCheck:
		r.path, r.version = d.Path(), d.Int32()
	case proto.OpSetData:
		r.path, r.data, r.version = d.Path(), d.Bytes(), d.Int32()
	case proto.OpSetACL:
		r.path, r.acl, r.version = d.Path(), takeACLs(d), d.Int32()
	case proto.OpExists, proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2:
		r.path, r.watch = d.Path(), d.Bool()
	case proto.OpGetACL, proto.OpSync, proto.OpGetEphemerals, proto.OpCountChildren, proto.OpDeleteContainer:
		r.path = d.Path()
	case proto.OpCheckWatches, proto.OpRemoveWatches, proto.OpAddWatch:
		r.path, r.kind = d.Path(), d.Int32()
	default:
		return false
	}
	return true
}

func (r *request) parseOps(d *proto.Decoder) {
	for d.Err() == nil {
		op := request{op: proto.Opcode(d.Int32())}
		done := d.Bool()
		d.Int32() // an error number, of use in results only
		if done || d.Err() != nil {
			return
		}
		if !r.allows(op.op) || !op.parsePlain(d) {
			d.Fail()
			return
		}
		if d.Err() != nil && op.path == "" {
			return // of no use to FrameOf
		}
		op.normalize()
		r.ops = append(r.ops, op)
	}
}

// allows reports whether a multi of r's kind may hold op.
func (r *request) allows(op proto.Opcode) bool {
	if r.op == proto.OpMultiRead {
		return op == proto.OpGetData || op == proto.OpGetChildren
	}
	return isCreate(op) || op == proto.OpDelete || op == proto.OpSetData || op == proto.OpCheck
}

// normalize changes a create inside a multi as ZooKeeper does. The operation follows from the
// flags, whatever was asked for. So up to ZooKeeper 3.8 a create2 is answered like a create, and a create with the
// container flag makes a container.
func (r *request) normalize() {
	if !isCreate(r.op) {
		return
	}
	r.asked = r.op
	mode, _ := modeOf(r.flags)
	switch {
	case mode.container:
		r.op, r.ttl = proto.OpCreateContainer, -1
	case mode.ttl:
		r.op = proto.OpCreateTTL
	default:
		r.op, r.ttl = proto.OpCreate, -1
	}
}

// hasUnknownMode reports whether the operation is a create with flags that there are not.
func (r request) hasUnknownMode() bool {
	_, known := modeOf(r.flags)
	return isCreate(r.op) && !known
}

func (r *request) parseResume(d *proto.Decoder) {
	w := &r.resume
	w.relativeZxid, w.data, w.exist, w.child = d.Int64(), d.Strings(), d.Strings(), d.Strings()
	if r.op == proto.OpSetWatches2 {
		w.persistent, w.persistentTrees = d.Strings(), d.Strings()
	}
}

// FrameOf returns what rules of package fault are matched against, for who carries requests to a server: of a
// request in a session, by its frame without the length, or by as much of a long one as there is. It reports
// false if that is too short for a request.
func FrameOf(session int64, body []byte) (fault.Frame, bool) {
	r, _ := parseRequest(body) // as far as it can be decoded
	return r.faultFrame(session), len(body) >= 8
}

// faultFrame returns what fault rules are matched against.
func (r *request) faultFrame(session int64) fault.Frame {
	f := fault.Frame{Session: session, Xid: r.xid, Op: fault.OpOf(int32(r.op)), Path: r.path}
	if r.op == proto.OpMulti || r.op == proto.OpMultiRead {
		for _, op := range r.ops {
			f.Parts = append(f.Parts, fault.Part{Op: fault.OpOf(int32(op.op)), Path: op.path})
		}
	}
	return f
}

// isWrite reports whether the operation goes through the leader and takes a zxid,
// even when it fails.
func isWrite(op proto.Opcode) bool {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete, proto.OpDeleteContainer,
		proto.OpSetData, proto.OpSetACL, proto.OpCheck, proto.OpMulti, proto.OpReconfig, proto.OpCloseSession, proto.OpCreateSession:
		return true
	}
	return false
}

// isKnown reports whether the server has the operation.
func isKnown(op proto.Opcode) bool {
	switch op {
	case proto.OpExists, proto.OpGetData, proto.OpGetACL, proto.OpGetChildren, proto.OpSync, proto.OpPing, proto.OpGetChildren2, proto.OpCheckWatches,
		proto.OpRemoveWatches, proto.OpMultiRead, proto.OpAuth, proto.OpSetWatches, proto.OpGetEphemerals, proto.OpCountChildren,
		proto.OpSetWatches2, proto.OpAddWatch, proto.OpWhoAmI:
		return true
	case proto.OpCreateSession, proto.OpDeleteContainer:
		return false // the server's own
	}
	return isWrite(op)
}

// isCreate reports whether the operation creates a node.
func isCreate(op proto.Opcode) bool {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		return true
	}
	return false
}

// A createMode is what the flags of a create request ask for.
type createMode struct {
	ephemeral, sequential, container, ttl bool
}

// modeOf decodes flags and reports whether they are known.
func modeOf(flags int32) (mode createMode, known bool) {
	const ephemeralSequential = proto.FlagEphemeral | proto.FlagSequential
	return createMode{
		ephemeral:  flags == proto.FlagEphemeral || flags == ephemeralSequential,
		sequential: flags == proto.FlagSequential || flags == ephemeralSequential || flags == proto.FlagTTLSequential,
		container:  flags == proto.FlagContainer,
		ttl:        flags == proto.FlagTTL || flags == proto.FlagTTLSequential,
	}, flags >= 0 && flags <= proto.FlagTTLSequential
}
