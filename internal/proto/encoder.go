package proto

import "encoding/binary"

// An Encoder builds one frame.
type Encoder struct{ buf []byte } // its first four bytes are kept for the length

// NewEncoder returns an Encoder of a frame without a body.
func NewEncoder() *Encoder { return &Encoder{buf: make([]byte, LengthSize, 128)} }

// Frame returns the finished frame, with its length in front.
func (e *Encoder) Frame() []byte {
	binary.BigEndian.PutUint32(e.buf, uint32(len(e.buf)-LengthSize))
	return e.buf
}

// Body returns the frame's body, as far as it is built.
func (e *Encoder) Body() []byte { return e.buf[LengthSize:] }

// Raw appends bytes as they are.
func (e *Encoder) Raw(b []byte) { e.buf = append(e.buf, b...) }

// Bool appends a truth value.
func (e *Encoder) Bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	e.buf = append(e.buf, b)
}

// Int32 appends a number of 4 bytes.
func (e *Encoder) Int32(v int32) { e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(v)) }

// Int64 appends a number of 8 bytes.
func (e *Encoder) Int64(v int64) { e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(v)) }

// Bytes appends a buffer; nil becomes null.
func (e *Encoder) Bytes(v []byte) {
	if v == nil {
		e.Int32(-1)
		return
	}
	e.Int32(int32(len(v)))
	e.buf = append(e.buf, v...)
}

// String appends a string.
func (e *Encoder) String(v string) { e.buf = AppendString(e.buf, v) }

// Strings appends a list of strings.
func (e *Encoder) Strings(v []string) {
	e.Int32(int32(len(v)))
	for _, s := range v {
		e.String(s)
	}
}

// AppendString returns b with s behind it, as the protocol has strings.
func AppendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}
