package counter

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A number is the width of a counter, in bytes.
type number int

func numberOf(int32 bool) number {
	if int32 {
		return 4
	}
	return 8
}

// decode returns the number of the state. A missing znode, and one without data, is 0, as for
// Curator.
func (n number) decode(at state) (int64, error) {
	switch {
	case len(at.data) == 0:
		return 0, nil
	case len(at.data) != int(n):
		return 0, fmt.Errorf("%w: %d bytes, want %d", ErrCorrupt, len(at.data), int(n))
	case n == 4:
		return int64(int32(binary.BigEndian.Uint32(at.data))), nil
	}
	return int64(binary.BigEndian.Uint64(at.data)), nil
}

func (n number) encode(v int64) []byte {
	if n == 4 {
		return binary.BigEndian.AppendUint32(nil, uint32(v))
	}
	return binary.BigEndian.AppendUint64(nil, uint64(v))
}

// fits reports whether v is in the number's range.
func (n number) fits(v int64) bool {
	return n == 8 || v >= math.MinInt32 && v <= math.MaxInt32
}
