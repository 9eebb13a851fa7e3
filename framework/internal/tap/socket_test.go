package tap_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/internal/must"
)

// A socket is a connection below a Tap that counts what is set, and whose writes
// can be made to fail while reads go on.
type socket struct {
	net.Conn
	fail      error
	deadlines int
	takenBack int
}

func (s *socket) Write(p []byte) (int, error) {
	if s.fail != nil {
		return 0, s.fail
	}
	return s.Conn.Write(p)
}

func (s *socket) SetReadDeadline(at time.Time) error {
	s.deadlines++
	if at.IsZero() {
		s.takenBack++
	}
	return s.Conn.SetReadDeadline(at)
}

// onSocket returns a peer whose connection can be looked into, after its handshake.
func onSocket(t *testing.T) (*peer, *socket) {
	t.Helper()
	p := &peer{t: t, tap: newTap()}
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close(); server.Close() })
	s := &socket{Conn: client}
	wrapped := must.Get(p.tap.Wrap(s, time.Now().Add(time.Minute)))(t)
	p.client, p.server = wrapped, server
	p.send(make([]byte, 44))
	p.reply(greeting(7))
	return p, s
}

// The socket is closed.
func TestAFailedWriteSurfacesThroughTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := onSocket(t)
		s.fail = errors.New("no route")
		frame := framed(binary.BigEndian.AppendUint64(nil, 1<<32+opSync))
		if n, err := p.client.Write(frame); n != len(frame) || err != nil {
			t.Errorf("Write: %d, %v, want success", n, err)
		}
		if _, err := p.client.Read(make([]byte, 4)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Read: %v, want that of a closed socket", err)
		}
		if err := p.tap.Fault(); !errors.Is(err, s.fail) {
			t.Errorf("the fault is %v, want the write's", err)
		}
	})
}

// The wire client sets a deadline before each frame and takes it back behind it: most of
// these calls don't reach the system, and none is taken back.
func TestDeadlinesThatMoveLittleAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, frames = 32 * time.Second, 1000
		p, s := onSocket(t)
		s.deadlines, s.takenBack = 0, 0
		for range frames {
			_ = p.client.SetReadDeadline(time.Now().Add(limit))
			p.read()
			_ = p.client.SetReadDeadline(time.Time{})
			<-time.After(10 * time.Millisecond)
		}
		// One in a thirty-second of the limit, which is a second.
		if s.deadlines < frames/110 || s.deadlines > frames/90 || s.takenBack != 0 {
			t.Errorf("%d deadlines were set and %d taken back for %d frames", s.deadlines, s.takenBack, frames)
		}
		s.deadlines = 0
		_ = p.client.SetReadDeadline(time.Now().Add(limit / 2)) // an earlier one counts at once
		if s.deadlines != 1 {
			t.Error("an earlier deadline was left out")
		}
		p.client.Close()
	})
}

func TestAGreetingIsCompletedOnlyWhereItIsAnOldOne(t *testing.T) {
	old := append([]byte{0, 0, 0, 44}, make([]byte, 44)...)
	for name, tc := range map[string]struct{ given, want []byte }{
		"an old one":               {old, append([]byte{0, 0, 0, 45}, make([]byte, 45)...)},
		"a new one":                {append([]byte{0, 0, 0, 45}, make([]byte, 45)...), append([]byte{0, 0, 0, 45}, make([]byte, 45)...)},
		"one of an odd length":     {append([]byte{0, 0, 0, 40}, make([]byte, 44)...), append([]byte{0, 0, 0, 40}, make([]byte, 44)...)},
		"one that is cut short":    {old[:40], old[:40]},
		"one with something after": {append(bytes.Clone(old), 1), append(bytes.Clone(old), 1)},
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := dialled(t)
			go func() { _, _ = p.client.Write(tc.given) }()
			sent := make([]byte, len(tc.want))
			if _, err := io.ReadFull(p.server, sent); err != nil || !bytes.Equal(sent, tc.want) {
				t.Errorf("%x was sent, %v, want %x", sent, err, tc.want)
			}
		})
	}
}

// With no margin, which is for servers that pass every sign of life on at once, an
// answer proves the request itself.
func TestWithoutAMarginAWriteProvesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{t: t, tap: newTapWith(0)}
		start := time.Now()
		p.reconnect()
		for n := range 10 {
			if got, want := p.tap.Deadline().Sub(start), timeout+time.Duration(n)*time.Second; got != want {
				t.Errorf("the deadline is %v after the start, want %v", got, want)
			}
			<-time.After(time.Second)
			p.write()
		}
	})
}

// Contacts that an answer has proven are forgotten.
func TestContactsThatAreProvenAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		for range 30 {
			<-time.After(300 * time.Millisecond)
			p.write()
		}
		if n, most := tap.Contacts(p.tap), int(margin/(300*time.Millisecond))+1; n > most {
			t.Errorf("%d contacts are kept, want at most %d", n, most)
		}
	})
}
