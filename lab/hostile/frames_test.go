package hostile_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/docent-go/docent/internal/proto"
)

// A field is a part of a frame: a number of four bytes, and the text behind it whose length it is, if there is
// one.
type field struct{ at, text int }

// fieldsOf returns what look like the fields of a frame, whatever its opcode is.
func fieldsOf(frame []byte) (fields []field) {
	for at := 0; at+4 <= len(frame); {
		f := field{at, textAt(frame, at)}
		fields = append(fields, f)
		at += 4 + f.text
	}
	return fields
}

// textAt returns the length of the text whose length is at the place, 0 if there is none.
func textAt(frame []byte, at int) int {
	n, rest := int(binary.BigEndian.Uint32(frame[at:])), frame[at+4:]
	if n > len(rest) || bytes.ContainsFunc(rest[:n], unicode.IsControl) {
		return 0
	}
	return n
}

// Values that numbers and lengths are set to.
var (
	extremes32 = []int32{0, 1, -1, -2, -4, -8, 2, 4, 5, 127, 1 << 16, 1 << 20, 1 << 30, math.MaxInt32, math.MinInt32, -1000, -1001}
	extremes64 = []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1 << 32, 1 << 40, math.MaxInt64 - 1}
)

// codes are the codes of replies, known and unknown.
var codes = []proto.Code{
	0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -13, -14, -100, -101, -102, -103, -108, -110, -111, -112, -113, -114,
	-115, -118, -119, -120, -121, -122, -123, -124, -125, -127, 1, 1000, -1000001, -1000002, math.MinInt32,
}

// hostileTexts are texts for paths, names and data.
var hostileTexts = []string{
	"", "/", "a", "..", ".", "/..", "//", "/a//b", "a/b", "../../a", "/a/", "\x00", "/a\x00b", "/a\nb",
	"\xff\xfe", "/\xff", "/zookeeper", "/zookeeper/config", "zookeeper", strings.Repeat("/x", 3000), strings.Repeat("y", 5000),
	"_c_00000000-0000-0000-0000-000000000000-latch-2147483647", "latch--2147483648", "latch-9999999999", "-latch-0000000000",
}

// mutateField changes one field of the frame, or two that follow each other: a number of eight bytes.
func mutateField(s *script, frame []byte, greeting bool) []byte {
	f := pick(s, fieldsOf(frame))
	frame = slices.Clone(frame)
	number, kind := frame[f.at:], s.below(3)
	switch {
	case f.text > 0 && kind == 0: // another text
		frame = slices.Concat(frame[:f.at], proto.AppendString(nil, pick(s, hostileTexts)), frame[f.at+4+f.text:])
		return framed(frame[proto.LengthSize:])
	case f.text == 0 && len(number) >= 8 && s.below(2) == 0:
		value := pick(s, extremes64)
		if kind == 1 && !greeting { // a server never gives two sessions one id
			value = int64(binary.BigEndian.Uint64(number)) + int64(s.below(5)) - 2
		}
		binary.BigEndian.PutUint64(number, uint64(value))
	default:
		value := pick(s, extremes32)
		if kind == 1 && !greeting {
			value = int32(binary.BigEndian.Uint32(number)) + int32(s.below(5)) - 2
		}
		binary.BigEndian.PutUint32(number, uint32(value))
	}
	return frame
}

// framed returns the body as a frame.
func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// eventFrame returns a watch event.
func eventFrame(kind, state int32, path string) []byte {
	e := proto.NewEncoder()
	e.ReplyHead(proto.XidEvent, -1, 0)
	e.Int32(kind)
	e.Int32(state)
	e.String(path)
	return e.Frame()
}
