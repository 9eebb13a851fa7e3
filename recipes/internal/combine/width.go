package combine

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/docent-go/docent/internal/errtype"
)

// Errors of numbers. If one is returned, nothing was written.
var (
	ErrOverflow = errtype.New("the result overflows", "overflow")
	ErrCorrupt  = errtype.New("the znode's data is not that of a counter", "corrupt")
)

// A width is the number of bytes of a number.
type width int

func widthOf(int32 bool) width {
	if int32 {
		return 4
	}
	return 8
}

// decode returns the number of a znode's data. No data is 0, as for Curator, and as a missing znode.
func (w width) decode(data []byte) (int64, error) {
	switch {
	case len(data) == 0:
		return 0, nil
	case len(data) != int(w):
		return 0, fmt.Errorf("%w: %d bytes, want %d", ErrCorrupt, len(data), int(w))
	case w == 4:
		return int64(int32(binary.BigEndian.Uint32(data))), nil
	}
	return int64(binary.BigEndian.Uint64(data)), nil
}

func (w width) encode(v int64) []byte {
	if w == 4 {
		return binary.BigEndian.AppendUint32(nil, uint32(v))
	}
	return binary.BigEndian.AppendUint64(nil, uint64(v))
}

// fits reports whether v is in the width's range.
func (w width) fits(v int64) bool {
	return w == 8 || v >= math.MinInt32 && v <= math.MaxInt32
}
