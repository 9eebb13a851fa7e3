package hostile_test

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/docent-go/docent/internal/proto"
)

// A field is a part of a frame, with the frame's own length at its start.
type field struct {
	at, size int
	isLength bool // of the size bytes after it, for a text; of elements, for a list
	content  int  // bytes of a text that follow
}

// A walker finds the fields of a frame. It stops where the frame ends.
type walker struct {
	frame  []byte
	at     int
	fields []field
	ended  bool
}

func (w *walker) number(size int) (value int64) {
	if w.ended || w.at+size > len(w.frame) {
		w.ended = true
		return 0
	}
	w.fields = append(w.fields, field{at: w.at, size: size})
	for _, b := range w.frame[w.at : w.at+size] {
		value = value<<8 | int64(b)
	}
	w.at += size
	if size == 4 {
		return int64(int32(value))
	}
	return value
}

func (w *walker) int32() int { return int(w.number(4)) }

func (w *walker) text() {
	n := w.int32()
	if w.ended {
		return
	}
	n = max(n, 0)
	if w.at+n > len(w.frame) {
		w.ended = true
		return
	}
	f := &w.fields[len(w.fields)-1]
	f.isLength, f.content = true, n
	w.at += n
}

func (w *walker) list(element func()) {
	n := w.int32()
	if w.ended {
		return
	}
	w.fields[len(w.fields)-1].isLength = true
	for ; n > 0 && !w.ended; n-- {
		element()
	}
}

func (w *walker) stat() {
	for _, size := range []int{8, 8, 8, 8, 4, 4, 4, 8, 4, 4, 8} {
		w.number(size)
	}
}

// fieldsOf returns the fields of a frame from the server. opcode is that of the request, if it is a
// reply; greeting says that it is the reply to the handshake.
func fieldsOf(frame []byte, greeting bool, opcode proto.Opcode) []field {
	w := &walker{frame: frame}
	w.int32() // the frame's length
	if greeting {
		w.int32() // version
		w.int32() // timeout
		w.number(8)
		w.text()
		w.number(1)
		return w.fields
	}
	xid := w.int32()
	w.number(8)
	w.int32() // the code
	if int32(xid) == proto.XidEvent {
		w.int32()
		w.int32()
		w.text()
		return w.fields
	}
	w.body(opcode)
	return w.fields
}

func (w *walker) body(opcode proto.Opcode) {
	switch opcode {
	case proto.OpCreate, proto.OpSync:
		w.text()
	case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpGetData, proto.OpReconfig:
		w.text()
		w.stat()
	case proto.OpExists, proto.OpSetData, proto.OpSetACL:
		w.stat()
	case proto.OpGetACL:
		w.list(func() { w.int32(); w.text(); w.text() })
		w.stat()
	case proto.OpGetChildren2:
		w.list(w.text)
		w.stat()
	case proto.OpGetEphemerals:
		w.list(w.text)
	case proto.OpWhoAmI:
		w.list(func() { w.text(); w.text() })
	case proto.OpMulti:
		for !w.ended {
			op := proto.Opcode(w.int32())
			done := w.number(1)
			w.int32()
			if w.ended || done != 0 {
				return
			}
			if op == proto.OpError {
				w.int32()
				continue
			}
			w.body(op)
		}
	}
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

// mutateField changes one field of the frame.
func mutateField(s *script, frame []byte, fields []field, greeting bool) []byte {
	f := pick(s, fields)
	frame = slices.Clone(frame)
	kind := s.below(3)
	switch {
	case f.isLength && kind == 0: // another text
		text := pick(s, hostileTexts)
		end := f.at + f.size + f.content
		frame = slices.Concat(frame[:f.at], proto.AppendString(nil, text), frame[end:])
		return framed(frame[proto.LengthSize:])
	case f.size == 8:
		value := pick(s, extremes64)
		if kind == 1 && !greeting { // a server never gives two sessions one id
			value = int64(binary.BigEndian.Uint64(frame[f.at:])) + int64(s.below(5)) - 2
		}
		binary.BigEndian.PutUint64(frame[f.at:], uint64(value))
	case f.size == 4:
		value := pick(s, extremes32)
		if kind == 1 {
			value = int32(binary.BigEndian.Uint32(frame[f.at:])) + int32(s.below(5)) - 2
		}
		binary.BigEndian.PutUint32(frame[f.at:], uint32(value))
	default:
		frame[f.at] = byte(s.below(256))
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
