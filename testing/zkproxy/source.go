package zkproxy

import (
	"bufio"
	"encoding/binary"
	"io"
)

const (
	// pieceSize bounds what is read of a frame at once, and so what rules see of it:
	// a transaction of some hundred creates fits.
	pieceSize = 64 << 10

	// bufferSize is read ahead, for the small frames that are the rule.
	bufferSize = 16 << 10

	lengthSize = 4 // of the length that each frame begins with

	// minHandshake bounds the first length. The handshake is 44 bytes long, and 45 with its read-only flag. Whatever
	// else may come first on a connection, letters or TLS, makes a length of
	// hundreds of megabytes.
	minHandshake = 28
	maxHandshake = 1 << 10
)

// A piece is what is read from a connection at once: a frame, or a part of one that
// is larger than pieceSize.
type piece struct {
	bytes []byte
	head  bool // bytes begin with a frame's length; false for later parts and for raw bytes
}

// body returns the frame without its length, as far as it is in the piece.
func (p piece) body() []byte { return p.bytes[lengthSize:] }

// A source cuts the bytes that arrive on a connection into pieces.
type source struct {
	r    *bufio.Reader
	left int  // bytes of the frame begun that are still to come
	raw  bool // the rest of the stream isn't frames
}

func newSource(r io.Reader) *source {
	return &source{r: bufio.NewReaderSize(r, bufferSize)}
}

// nextHandshake is next for the first frame of a client. A stream that begins with
// anything else is raw.
func (s *source) nextHandshake() (piece, error) {
	prefix, err := s.r.Peek(lengthSize)
	if err == nil {
		length := int32(binary.BigEndian.Uint32(prefix))
		s.raw = length < minHandshake || length > maxHandshake
	}
	return s.next()
}

// next returns the next piece, and with an error what had arrived before it.
func (s *source) next() (piece, error) {
	switch {
	case s.raw:
		return s.nextRaw()
	case s.left > 0:
		return s.nextPart()
	}
	prefix, err := s.r.Peek(lengthSize)
	if err != nil {
		// A lone byte or two: pass on what there is.
		s.raw = true
		p, _ := s.take(s.r.Buffered())
		return p, err
	}
	length := int32(binary.BigEndian.Uint32(prefix))
	if length < 0 {
		s.raw = true
		return s.nextRaw()
	}
	n := min(int(length), pieceSize)
	s.left = int(length) - n
	p, err := s.take(lengthSize + n)
	p.head = err == nil
	return p, err
}

// nextPart returns more of a frame that has been begun.
func (s *source) nextPart() (piece, error) {
	p, err := s.take(min(s.left, pieceSize))
	s.left -= len(p.bytes)
	return p, err
}

// discardFrame drops what is still to come of the frame that next has begun. If the
// connection ends in it, next reports that.
func (s *source) discardFrame() {
	_, _ = s.r.Discard(s.left)
	s.left = 0
}

// nextRaw returns whatever has arrived.
func (s *source) nextRaw() (piece, error) {
	if _, err := s.r.Peek(1); err != nil {
		return piece{}, err
	}
	return s.take(s.r.Buffered())
}

// take reads n bytes, fewer only with an error.
func (s *source) take(n int) (piece, error) {
	bytes := make([]byte, n)
	got, err := io.ReadFull(s.r, bytes)
	return piece{bytes: bytes[:got]}, err
}
