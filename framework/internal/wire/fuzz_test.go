package wire_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework/internal/wire"
)

// FuzzFrames feeds a connection whatever a server, or something that is none, may send, in pieces of any
// size: it must not panic, and must come to the same whatever the pieces.
func FuzzFrames(f *testing.F) {
	handshake := framed(greeting(7))
	event := framed(words(-1, 0, 1, 0, 1, 3, "/a"))
	answer := append([]byte{0, 0, 0, 18, 0xff, 0xff, 0xfc, 0x18}, make([]byte, 14)...)
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), []byte{3, 1})
	f.Add(slices.Concat(handshake, event), []byte{1})
	f.Add(slices.Concat(handshake, []byte{0x7f, 0xff, 0xff, 0xff, 1, 2, 3}), []byte{5, 2})
	f.Add(slices.Concat(handshake, []byte{0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3}), []byte{255})
	f.Add(slices.Concat(handshake, answer, event), []byte{7})
	f.Fuzz(func(t *testing.T, stream, pieces []byte) {
		if whole, split := feed(t, stream, nil), feed(t, stream, pieces); whole != split {
			t.Errorf("in one piece %s, in several %s", whole, split)
		}
	})
}

// A script is a connection to a server that sends a stream, in pieces, and ends.
type script struct {
	net.Conn
	stream, pieces []byte
	reads          int
}

func (s *script) Read(p []byte) (int, error) {
	if s.reads > 0 && len(s.stream) == 0 {
		return 0, io.EOF
	}
	n := len(p)
	if len(s.pieces) > 0 {
		n = min(n, int(s.pieces[s.reads%len(s.pieces)])+1)
	}
	s.reads++
	if n = copy(p[:n], s.stream); n == 0 {
		return 0, io.EOF
	}
	s.stream = s.stream[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error)      { return len(p), nil }
func (s *script) Close() error                     { return nil }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// feed returns what is delivered of the stream, and how that ends.
func feed(t *testing.T, stream, pieces []byte) string {
	t.Helper()
	var delivered bytes.Buffer
	down := make(chan struct{})
	w := newWire(func(c *wire.Config) {
		c.OnEvent = func(kind int32, path string) { fmt.Fprint(&delivered, kind, path, ";") }
		c.OnDown = func() { close(down) }
	})
	_, err := w.Connect(withMinute(t), &script{stream: stream, pieces: pieces}, wire.Identification{})
	if err != nil {
		return fmt.Sprintf("%v, session %d", err, w.Status().ID)
	}
	<-down
	return fmt.Sprintf("%s %v", delivered.String(), w.Status().Fault)
}
