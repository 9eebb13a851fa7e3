// Package proto is the part of ZooKeeper's protocol that the client and the test kit share:
// opcodes, error codes, Stat, frames, the handshake, and the encoding of their fields.
//
// The encoding is jute, as in zookeeper.jute of Apache ZooKeeper 3.5 and later: big-endian
// numbers, and a 4-byte length before a string, a buffer or a list. A frame is a 4-byte length and
// a body. The body of a request begins with xid and opcode, that of a reply with xid, zxid and
// code. The package knows no connection and no state.
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
	if n <= readAtOnce {
		body := make([]byte, n)
		_, err := io.ReadFull(r, body)
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(body) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return body, err
}

// readAtOnce is the length up to which a frame gets its memory at once. A longer one grows as it arrives: a length alone
// takes no memory.
const readAtOnce = 64 << 10

// An Opcode names an operation.
type Opcode int32

// The opcodes (org.apache.zookeeper.ZooDefs.OpCode).
const (
	OpCreate          Opcode = 1
	OpDelete          Opcode = 2
	OpExists          Opcode = 3
	OpGetData         Opcode = 4
	OpSetData         Opcode = 5
	OpGetACL          Opcode = 6
	OpSetACL          Opcode = 7
	OpGetChildren     Opcode = 8
	OpSync            Opcode = 9
	OpPing            Opcode = 11
	OpGetChildren2    Opcode = 12
	OpCheck           Opcode = 13
	OpMulti           Opcode = 14
	OpCreate2         Opcode = 15
	OpReconfig        Opcode = 16
	OpCheckWatches    Opcode = 17
	OpRemoveWatches   Opcode = 18
	OpCreateContainer Opcode = 19
	OpDeleteContainer Opcode = 20
	OpCreateTTL       Opcode = 21
	OpMultiRead       Opcode = 22
	OpAuth            Opcode = 100
	OpSetWatches      Opcode = 101
	OpSASL            Opcode = 102
	OpGetEphemerals   Opcode = 103
	OpCountChildren   Opcode = 104 // getAllChildrenNumber: every descendant
	OpSetWatches2     Opcode = 105
	OpAddWatch        Opcode = 106
	OpWhoAmI          Opcode = 107
	OpError           Opcode = -1 // only among the results of a transaction
	OpCreateSession   Opcode = -10
	OpCloseSession    Opcode = -11
)

// Flags of a create.
const (
	FlagEphemeral     int32 = 1
	FlagSequential    int32 = 2
	FlagContainer     int32 = 4
	FlagTTL           int32 = 5
	FlagTTLSequential int32 = 6
)

// A Code is what a reply says of its request: CodeOK, or an error.
type Code int32

// The codes (org.apache.zookeeper.KeeperException.Code).
const (
	CodeOK                      Code = 0
	CodeRuntimeInconsistency    Code = -2 // of an operation behind the failed one of a transaction
	CodeMarshallingError        Code = -5
	CodeUnimplemented           Code = -6
	CodeBadArguments            Code = -8
	CodeNoQuorum                Code = -13 // NewConfigNoQuorum
	CodeInProgress              Code = -14 // ReconfigInProgress
	CodeNoNode                  Code = -101
	CodeNoAuth                  Code = -102
	CodeBadVersion              Code = -103
	CodeNoChildrenForEphemerals Code = -108
	CodeNodeExists              Code = -110
	CodeNotEmpty                Code = -111
	CodeSessionExpired          Code = -112
	CodeInvalidACL              Code = -114
	CodeAuthFailed              Code = -115
	CodeSessionMoved            Code = -118
	CodeNotReadOnly             Code = -119
	CodeNoWatcher               Code = -121
	CodeReconfigDisabled        Code = -123
	CodeAuthRequired            Code = -124 // SessionClosedRequireSaslAuth
	CodeQuotaExceeded           Code = -125
	CodeThrottled               Code = -127
)
