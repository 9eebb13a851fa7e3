package tap_test

import (
	"bytes"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/internal/must"
)

// FuzzFrames feeds a connection whatever a server, or something that is none,
// may send, in pieces of any size: it must not panic, must not hold much more than has
// arrived, and must hand on the same whatever the pieces.
func FuzzFrames(f *testing.F) {
	good := greeting(7)
	handshake := framed(good)
	reply := append([]byte{0, 0, 0, 16, 0, 0, 0, 1}, make([]byte, 12)...)
	answer := append([]byte{0, 0, 0, 18, 0xff, 0xff, 0xfc, 0x18}, make([]byte, 14)...) // to a Request
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), []byte{3, 1})
	f.Add(append(append([]byte{}, handshake...), reply...), []byte{1})
	f.Add(append(append([]byte{}, handshake...), 0x7f, 0xff, 0xff, 0xff, 1, 2, 3), []byte{5, 2})
	f.Add(append(append([]byte{}, handshake...), 0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3), []byte{255})
	f.Add(append(append(append([]byte{}, handshake...), answer...), reply...), []byte{7})
	f.Add(slices.Concat(handshake, framed(words(1, 0, 1, 0, "/a", make([]byte, statLength))), reply), []byte{1})
	f.Fuzz(func(t *testing.T, stream, pieces []byte) {
		whole, wholeErr := feed(t, stream, nil)
		split, splitErr := feed(t, stream, pieces)
		if !bytes.Equal(whole, split) || wholeErr.Error() != splitErr.Error() {
			t.Errorf("in one piece %x (%v), in several %x (%v)", whole, wholeErr, split, splitErr)
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
	if len(s.stream) == 0 {
		return 0, io.EOF
	}
	n := len(p)
	if len(s.pieces) > 0 {
		n = min(n, int(s.pieces[s.reads%len(s.pieces)])+1)
	}
	s.reads++
	n = copy(p[:n], s.stream)
	s.stream = s.stream[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error)      { return len(p), nil }
func (s *script) Close() error                     { return nil }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// feed returns what is handed on of the stream, and how that ends.
func feed(t *testing.T, stream, pieces []byte) (passed []byte, err error) {
	t.Helper()
	tp := newTap()
	conn := must.Get(tp.Wrap(&script{stream: stream, pieces: pieces}, time.Now().Add(time.Minute)))(t)
	tap.Outgoing(conn, make([]byte, 48))
	create := []byte{0, 0, 0, 28, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, '/', 'a', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	tap.Outgoing(conn, create)
	tap.InFlight(conn, 107, 100)
	for p := make([]byte, 1000); err == nil; {
		var n int
		n, err = conn.Read(p)
		passed = append(passed, p[:n]...)
		id, _, _ := tp.Session()
		limit := tap.Growth + len(stream)
		if id == 0 && tp.Ended() == nil { // none has been granted, nor refused
			limit = tap.MaxHandshake + 4
		}
		if held := tap.Held(conn); held > 2*limit { // a slice grows by doubling
			t.Fatalf("%d bytes are held, session %d", held, id)
		}
	}
	return passed, err
}

// FuzzOutgoing has a connection record whatever frame the wire client might send behind its handshake:
// nothing may change.
func FuzzOutgoing(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, '/', 'a', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4})
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 14, 0, 0, 0, 1, 0, 255, 255, 255, 255, 0, 0, 0, 9, '/'})
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 2, '/', 'a', 0})
	f.Fuzz(func(t *testing.T, body []byte) {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		tp := newTap()
		conn := must.Get(tp.Wrap(a, time.Now().Add(time.Minute)))(t)
		tap.Outgoing(conn, make([]byte, 48))
		frame := framed(body)
		if sent := tap.Outgoing(conn, frame); !bytes.Equal(sent, frame) {
			t.Errorf("%x was sent for %x", sent, frame)
		}
	})
}
