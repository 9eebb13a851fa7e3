package zkserver

import "github.com/docent-go/docent/testing/fault"

// A request is a decoded request, or one operation of a multi. Which fields mean
// something depends on op.
type request struct {
	xid     int32
	op      opcode
	path    string
	data    []byte
	acl     []acl
	flags   int32 // of a create
	ttl     int64 // of a createTTL, in milliseconds; -1 in every other create
	version int32 // expected; -1 matches every version
	watch   bool
	kind    int32       // watcher type of removeWatches and checkWatches, mode of addWatch
	scheme  string      // of an auth
	ops     []request   // of a multi
	resume  watchResume // of a setWatches
}

// A watchResume is what a client that reconnects asks to be watched on.
type watchResume struct {
	relativeZxid                int64 // changes after it are told at once
	data, exist, child          []string
	persistent, persistentTrees []string
}

// parseRequest decodes a frame without its length.
func parseRequest(frame []byte) (request, error) {
	d := &decoder{rest: frame}
	r := request{xid: d.int32(), op: opcode(d.int32())}
	r.parseBody(d)
	return r, d.end()
}

func (r *request) parseBody(d *decoder) {
	switch r.op {
	case opPing, opCloseSession, opWhoAmI:
	case opMulti, opMultiRead:
		r.parseOps(d)
	case opAuth:
		d.int32() // a type that nobody uses
		r.scheme, r.data = d.string(), d.bytes()
	case opSetWatches, opSetWatches2:
		r.parseResume(d)
	default:
		if !r.parsePlain(d) {
			d.rest = nil // it is refused, whatever it holds
		}
	}
}

// parsePlain decodes an operation on one path and reports whether op is one.
func (r *request) parsePlain(d *decoder) bool {
	switch r.op {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL:
		r.path, r.data, r.acl, r.flags = d.path(), d.bytes(), d.acls(), d.int32()
		r.ttl = -1
		if r.op == opCreateTTL {
			r.ttl = d.int64()
		}
	case opDelete, opCheck:
		r.path, r.version = d.path(), d.int32()
	case opSetData:
		r.path, r.data, r.version = d.path(), d.bytes(), d.int32()
	case opSetACL:
		r.path, r.acl, r.version = d.path(), d.acls(), d.int32()
	case opExists, opGetData, opGetChildren, opGetChildren2:
		r.path, r.watch = d.path(), d.bool()
	case opGetACL, opSync, opGetEphemerals, opCountChildren:
		r.path = d.path()
	case opCheckWatches, opRemoveWatches, opAddWatch:
		r.path, r.kind = d.path(), d.int32()
	default:
		return false
	}
	return true
}

func (r *request) parseOps(d *decoder) {
	for d.err == nil {
		op := request{op: opcode(d.int32())}
		done := d.bool()
		d.int32() // an error number, of use in results only
		if done || d.err != nil {
			return
		}
		if !r.allows(op.op) || !op.parsePlain(d) {
			d.err = errMalformed
			return
		}
		op.normalize()
		r.ops = append(r.ops, op)
	}
}

// allows reports whether a multi of r's kind may hold op.
func (r *request) allows(op opcode) bool {
	if r.op == opMultiRead {
		return op == opGetData || op == opGetChildren
	}
	return op.isCreate() || op == opDelete || op == opSetData || op == opCheck
}

// normalize does to a create inside a multi what ZooKeeper does: the operation
// follows from the flags, whatever was asked for, so a create2 answers like a
// create and a create with the container flag makes a container.
func (r *request) normalize() {
	if !r.op.isCreate() {
		return
	}
	mode, _ := modeOf(r.flags)
	switch {
	case mode.container:
		r.op, r.ttl = opCreateContainer, -1
	case mode.ttl:
		r.op = opCreateTTL
	default:
		r.op, r.ttl = opCreate, -1
	}
}

func (r *request) parseResume(d *decoder) {
	w := &r.resume
	w.relativeZxid, w.data, w.exist, w.child = d.int64(), d.strings(), d.strings(), d.strings()
	if r.op == opSetWatches2 {
		w.persistent, w.persistentTrees = d.strings(), d.strings()
	}
}

// faultFrame returns what fault rules are matched against.
func (r *request) faultFrame(session int64) fault.Frame {
	f := fault.Frame{Session: session, Xid: r.xid, Op: fault.OpOf(int32(r.op)), Path: r.path}
	if r.op == opMulti {
		for _, op := range r.ops {
			f.Parts = append(f.Parts, fault.Part{Op: fault.OpOf(int32(op.op)), Path: op.path})
		}
	}
	return f
}
