package tap_test

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
)

// FuzzFrames feeds a connection whatever a server, or something that is none,
// may send, in pieces of any size: it must not panic, must not hold more than a
// handshake before there is a session, and must tell the same whatever the pieces.
func FuzzFrames(f *testing.F) {
	good := greeting(7)
	handshake := append(binary.BigEndian.AppendUint32(nil, uint32(len(good))), good...)
	reply := append([]byte{0, 0, 0, 16, 0, 0, 0, 1}, make([]byte, 12)...)
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), []byte{3, 1})
	f.Add(append(append([]byte{}, handshake...), reply...), []byte{1})
	f.Add(append(append([]byte{}, handshake...), 0x7f, 0xff, 0xff, 0xff, 1, 2, 3), []byte{5, 2})
	f.Add(append(append([]byte{}, handshake...), 0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3), []byte{255})
	f.Fuzz(func(t *testing.T, stream, pieces []byte) {
		whole, wholeErr := feed(t, stream, nil)
		split, splitErr := feed(t, stream, pieces)
		if whole != split || (wholeErr == nil) != (splitErr == nil) {
			t.Errorf("in one piece session %d (%v), in several %d (%v)", whole, wholeErr, split, splitErr)
		}
	})
}

// feed returns the session after the stream has passed by.
func feed(t *testing.T, stream, pieces []byte) (session int64, err error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	tp := tap.New(func(time.Duration) time.Duration { return margin }, func() {})
	conn, err := tp.Wrap(a, time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	tap.Outgoing(conn, make([]byte, 48))
	tp.WantStat("/a", nil)
	create := []byte{0, 0, 0, 28, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, '/', 'a', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	tap.Outgoing(conn, create)
	for i := 0; len(stream) > 0 && err == nil; i++ {
		n := len(stream)
		if len(pieces) > 0 {
			n = min(n, int(pieces[i%len(pieces)])+1)
		}
		err = tap.Feed(conn, stream[:n])
		stream = stream[n:]
		id, _, _ := tp.Session()
		limit := tap.MaxHeld
		if id == 0 {
			limit = 64 << 10
		}
		if held := tap.Held(conn); held > 2*limit { // a slice grows by doubling
			t.Fatalf("%d bytes are held, session %d", held, id)
		}
	}
	session, _, _ = tp.Session()
	return session, err
}

// FuzzOutgoing has a connection complete whatever frame the wire client might
// send: nothing but what is documented may change.
func FuzzOutgoing(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, '/', 'a', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4})
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 14, 0, 0, 0, 1, 0, 255, 255, 255, 255, 0, 0, 0, 9, '/'})
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 2, '/', 'a', 0})
	f.Fuzz(func(t *testing.T, body []byte) {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		tp := tap.New(func(time.Duration) time.Duration { return margin }, func() {})
		conn, err := tp.Wrap(a, time.Now().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		tap.Outgoing(conn, make([]byte, 48))
		tp.Arm(tap.ReadExists, "/a")
		tp.WantStat("/a", nil)
		frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
		given := string(frame)
		sent := tap.Outgoing(conn, frame)
		if string(frame) != given {
			t.Error("the wire client's own buffer was changed")
		}
		differ := 0
		for i := range min(len(sent), len(frame)) {
			if sent[i] != frame[i] {
				differ++
			}
		}
		if len(sent) != len(frame) || differ > 1 {
			t.Errorf("%x was sent for %x", sent, frame)
		}
	})
}
