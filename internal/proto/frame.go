package proto

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Sizes of what is in front of a body's fields, in bytes.
const (
	LengthSize      = 4         // before a frame, a string, a buffer or a list
	RequestHeadSize = 4 + 4     // xid, opcode
	ReplyHeadSize   = 4 + 8 + 4 // xid, zxid, code
	OpHeadSize      = 4 + 1 + 4 // of an operation of a transaction: opcode, whether the list is over, code
)

// DefaultPort is the port at which servers listen for clients.
const DefaultPort = 2181

// Xids that are no request's.
const (
	XidEvent int32 = -1
	XidPing  int32 = -2
	XidAuth  int32 = -4
)

// A ReplyHead is what every reply begins with.
type ReplyHead struct {
	Xid  int32
	Zxid int64
	Code Code
}

// ReplyHead takes the head of a reply.
func (d *Decoder) ReplyHead() ReplyHead {
	return ReplyHead{Xid: d.Int32(), Zxid: d.Int64(), Code: Code(d.Int32())}
}

// ReplyHead appends the head of a reply.
func (e *Encoder) ReplyHead(xid int32, zxid int64, code Code) {
	e.Int32(xid)
	e.Int64(zxid)
	e.Int32(int32(code))
}

// RequestHead appends the head of a request.
func (e *Encoder) RequestHead(xid int32, op Opcode) {
	e.Int32(xid)
	e.Int32(int32(op))
}

// OpHead takes the head of an operation of a transaction, or of its result. done means that the
// list is over.
func (d *Decoder) OpHead() (op Opcode, done bool, code Code) {
	return Opcode(d.Int32()), d.Bool(), Code(d.Int32())
}

// OpHead appends the head of an operation of a transaction, or of its result.
func (e *Encoder) OpHead(op Opcode, done bool, code Code) {
	e.Int32(int32(op))
	e.Bool(done)
	e.Int32(int32(code))
}

// RequestFrame returns the frame of a request with the body.
func RequestFrame(xid int32, op Opcode, body []byte) []byte {
	e := Encoder{buf: make([]byte, LengthSize, LengthSize+RequestHeadSize+len(body))}
	e.RequestHead(xid, op)
	e.Raw(body)
	return e.Frame()
}

// ReadFrame reads one frame, and returns its body. It returns an error that wraps [ErrMalformed]
// if the length is negative or greater than most.
func ReadFrame(r io.Reader, most int) ([]byte, error) {
	var head [LengthSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int32(binary.BigEndian.Uint32(head[:]))
	if n < 0 || int(n) > most {
		return nil, fmt.Errorf("%w: %d bytes", ErrMalformed, n)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}
