package proto

import (
	"encoding/binary"
	"errors"
)

// ErrMalformed is the fault of bytes that are not what the protocol says.
var ErrMalformed = errors.New("malformed frame")

// A Decoder takes the fields of one body apart. The first fault stays: later fields are zero, so a
// caller asks for it once, at the end.
//
// It never allocates more than the body is long: it believes a count only as far as that many
// elements could still follow.
type Decoder struct {
	rest []byte
	err  error
}

// NewDecoder returns a Decoder of the body, whose memory its fields share.
func NewDecoder(body []byte) Decoder { return Decoder{rest: body} }

// Err returns the first fault, or nil.
func (d *Decoder) Err() error { return d.err }

// End returns the first fault. Bytes that are left over are one.
func (d *Decoder) End() error {
	if d.err == nil && len(d.rest) > 0 {
		d.Fail()
	}
	return d.err
}

// Fail makes the body a faulty one, unless it is one already.
func (d *Decoder) Fail() {
	if d.err == nil {
		d.err = ErrMalformed
	}
}

// Rest returns the bytes that no field has taken.
func (d *Decoder) Rest() []byte { return d.rest }

// Discard takes all bytes that are left.
func (d *Decoder) Discard() { d.rest = nil }

// Take takes n bytes; it returns nil if there are fewer.
func (d *Decoder) Take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.rest) {
		d.Fail()
		return nil
	}
	field := d.rest[:n:n]
	d.rest = d.rest[n:]
	return field
}

// Bool takes a truth value.
func (d *Decoder) Bool() bool {
	b := d.Take(1)
	return len(b) == 1 && b[0] != 0
}

// Int32 takes a number of 4 bytes.
func (d *Decoder) Int32() int32 {
	b := d.Take(4)
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

// Int64 takes a number of 8 bytes.
func (d *Decoder) Int64() int64 {
	b := d.Take(8)
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// Bytes takes a buffer or a string, and returns nil for null.
func (d *Decoder) Bytes() []byte {
	n := d.Int32()
	if n == -1 {
		return nil
	}
	return d.Take(int(n))
}

// Text takes a string that must not be null, without copying it.
func (d *Decoder) Text() []byte { return d.Take(int(d.Int32())) }

// String takes a string; null is "".
func (d *Decoder) String() string { return string(d.Bytes()) }

// Path takes a string that must not be null.
func (d *Decoder) Path() string { return string(d.Text()) }

// Count takes the length of a list whose elements have at least size bytes each; null has none.
func (d *Decoder) Count(size int) int {
	n := int(d.Int32())
	if n == -1 {
		return 0
	}
	if n < 0 || n > len(d.rest)/size {
		d.Fail()
		return 0
	}
	return n
}

// Strings takes a list of strings, and returns nil for one that has none.
func (d *Decoder) Strings() []string {
	n := d.Count(LengthSize)
	if n == 0 {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.Path())
	}
	return list
}
