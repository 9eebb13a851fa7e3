package zkserver

import "encoding/binary"

// An encoder builds one frame; its first four bytes are kept for the length.
type encoder struct{ buf []byte }

func newEncoder() *encoder { return &encoder{buf: make([]byte, 4, 128)} }

func (e *encoder) bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	e.buf = append(e.buf, b)
}

func (e *encoder) int32(v int32) { e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(v)) }

func (e *encoder) int64(v int64) { e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(v)) }

// bytes appends a buffer; nil becomes the protocol's null.
func (e *encoder) bytes(v []byte) {
	if v == nil {
		e.int32(-1)
		return
	}
	e.int32(int32(len(v)))
	e.buf = append(e.buf, v...)
}

func (e *encoder) string(v string) {
	e.int32(int32(len(v)))
	e.buf = append(e.buf, v...)
}

func (e *encoder) strings(v []string) {
	e.int32(int32(len(v)))
	for _, s := range v {
		e.string(s)
	}
}

func (e *encoder) acls(v []acl) {
	e.int32(int32(len(v)))
	for _, a := range v {
		e.int32(a.perms)
		e.string(a.id.scheme)
		e.string(a.id.id)
	}
}

func (e *encoder) stat(s stat) {
	e.int64(s.czxid)
	e.int64(s.mzxid)
	e.int64(s.ctime)
	e.int64(s.mtime)
	e.int32(s.version)
	e.int32(s.cversion)
	e.int32(s.aversion)
	e.int64(s.ephemeralOwner)
	e.int32(s.dataLength)
	e.int32(s.numChildren)
	e.int64(s.pzxid)
}

// replyHeader appends what every reply starts with.
func (e *encoder) replyHeader(xid int32, zxid int64, err code) {
	e.int32(xid)
	e.int64(zxid)
	e.int32(int32(err))
}

// multiHeader appends what every result of a multi starts with.
func (e *encoder) multiHeader(op opcode, done bool, err code) {
	e.int32(int32(op))
	e.bool(done)
	e.int32(int32(err))
}

// frame returns the finished frame with its length in front.
func (e *encoder) frame() []byte {
	binary.BigEndian.PutUint32(e.buf, uint32(len(e.buf)-4))
	return e.buf
}
