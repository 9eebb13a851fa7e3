package zkproxy

import "encoding/binary"

// A reader takes values in ZooKeeper's encoding off a buffer. A value that the
// buffer doesn't hold in full makes it fail, and a reader that has failed gives
// zero values: the proxy looks into frames as far as it can and leaves it to the
// server to judge them.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) take(n int) []byte {
	if r.failed || n < 0 || n > len(r.rest) {
		r.failed = true
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) bool() bool {
	b := r.take(1)
	return b != nil && b[0] != 0
}

func (r *reader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// buffer takes a byte array, in which a length of -1 stands for none.
func (r *reader) buffer() []byte {
	if n := r.int32(); n > 0 {
		return r.take(int(n))
	}
	return nil
}

func (r *reader) string() string { return string(r.buffer()) }

// skipACL takes a list of access rights.
func (r *reader) skipACL() {
	for n := r.int32(); n > 0 && !r.failed; n-- {
		r.int32()
		r.buffer()
		r.buffer()
	}
}
