package zkserver

import (
	"encoding/binary"
	"errors"
)

// errMalformed is why a connection is closed whose bytes are no frame of the
// protocol.
var errMalformed = errors.New("zkserver: malformed frame")

// A decoder takes the fields of one frame apart. The first fault sticks: later
// fields are zero, so a caller looks at err once, at the end.
//
// It never allocates more than the frame is long: a count is believed only as far
// as that many elements could still follow.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.rest) {
		d.err = errMalformed
		return nil
	}
	field := d.rest[:n:n]
	d.rest = d.rest[n:]
	return field
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return len(b) == 1 && b[0] != 0
}

func (d *decoder) int32() int32 {
	b := d.take(4)
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

func (d *decoder) int64() int64 {
	b := d.take(8)
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// bytes returns a buffer, nil for the protocol's null. It shares the frame's memory.
func (d *decoder) bytes() []byte {
	n := d.int32()
	if n == -1 {
		return nil
	}
	return d.take(int(n))
}

func (d *decoder) string() string { return string(d.bytes()) }

// path returns a string that must not be null.
func (d *decoder) path() string {
	b := d.bytes()
	if b == nil {
		d.err = errMalformed
	}
	return string(b)
}

// count returns the length of a vector whose elements take at least size bytes each.
func (d *decoder) count(size int) int {
	n := int(d.int32())
	if n == -1 {
		return 0
	}
	if n < 0 || n > len(d.rest)/size {
		d.err = errMalformed
		return 0
	}
	return n
}

func (d *decoder) strings() []string {
	n := d.count(4)
	if n == 0 {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.path())
	}
	return list
}

func (d *decoder) acls() []acl {
	n := d.count(12)
	if n == 0 {
		return nil
	}
	list := make([]acl, 0, n)
	for range n {
		list = append(list, acl{perms: d.int32(), id: authID{scheme: d.string(), id: d.string()}})
	}
	return list
}

// end returns the first fault, among them bytes that are left over.
func (d *decoder) end() error {
	if d.err == nil && len(d.rest) > 0 {
		d.err = errMalformed
	}
	return d.err
}
