package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
)

// closing runs CloseSession of session 7 against a server that sends answers, one for
// each frame that it gets, and then hangs up. It returns those frames, and the error.
func closing(t *testing.T, answers ...[]byte) (frames [][]byte, err error) {
	t.Helper()
	client, server := net.Pipe()
	done := make(chan error, 1)
	go func() {
		err := wire.CloseSession(t.Context(), client, wire.Identification{}, 7, bytes.Repeat([]byte{9}, 16))
		client.Close()
		done <- err
	}()
	for _, answer := range answers {
		body, err := nextFrame(server)
		if errors.Is(err, io.EOF) {
			break // it has asked for less
		}
		must.OK(t, err)
		frames = append(frames, body)
		go server.Write(answer) // it may be read in part
		synctest.Wait()
	}
	server.Close()
	return frames, <-done
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// replyTo returns a framed reply with a server's error code.
func replyTo(xid int32, code proto.Code) []byte { return framed(replyOf(xid, 5, code, nil)) }

func TestCloseSession_sends_nothing_else(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frames, err := closing(t, framed(greeting(7)), append(replyTo(-1, 0), replyTo(1, 0)...)) // -1: an event
		if err != nil || len(frames) != 2 {
			t.Fatalf("%d frames, %v", len(frames), err)
		}
		hello := append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, 0, 1) // version, zxid seen, the least timeout
		hello = append(hello, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 16)
		hello = append(append(hello, bytes.Repeat([]byte{9}, 16)...), 0)
		if !bytes.Equal(frames[0], hello) {
			t.Errorf("handshake %x, want %x", frames[0], hello)
		}
		if want := []byte{0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5}; !bytes.Equal(frames[1], want) {
			t.Errorf("request %x, want %x", frames[1], want)
		}
	})
}

func TestCloseSession_succeeds_once_the_session_is_over(t *testing.T) {
	good := framed(greeting(7))
	for name, tc := range map[string]struct {
		answers [][]byte
		frames  int // that are sent
		over    bool
		is      error // nil for any, where it is not over
	}{
		"it has expired":                     {[][]byte{framed(greeting(0)), nil}, 1, true, nil},
		"it expires meanwhile":               {[][]byte{good, replyTo(1, -112)}, 2, true, nil},
		"another session is answered":        {[][]byte{framed(greeting(8)), nil}, 1, false, wire.ErrSubstituted},
		"the session has moved":              {[][]byte{good, replyTo(1, -118)}, 2, false, nil},
		"the server sheds load":              {[][]byte{good, replyTo(1, -127)}, 2, false, nil},
		"nothing is answered":                {[][]byte{nil}, 1, false, io.EOF},
		"the handshake is cut short":         {[][]byte{good[:20]}, 1, false, io.ErrUnexpectedEOF},
		"the handshake is too short":         {[][]byte{framed(greeting(7)[:12])}, 1, false, wire.ErrHandshake},
		"an HTTP server answers":             {[][]byte{[]byte("HTTP/1.1 400 Bad Request\r\n\r\n")}, 1, false, wire.ErrHandshake},
		"a length is negative":               {[][]byte{{0xff, 0xff, 0xff, 0xff}}, 1, false, wire.ErrHandshake},
		"the close is not answered":          {[][]byte{good, nil}, 2, false, io.EOF},
		"the close is answered in part":      {[][]byte{good, replyTo(1, 0)[:10]}, 2, false, io.ErrUnexpectedEOF},
		"the reply to the close is no reply": {[][]byte{good, framed([]byte{0, 0, 0, 1})}, 2, false, nil},
	} {
		runSynctest(t, name, func(t *testing.T) {
			frames, err := closing(t, tc.answers...)
			if over := err == nil; over != tc.over || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("error %v; the session is over: %v, the error wanted: %v", err, tc.over, tc.is)
			}
			if len(frames) != tc.frames {
				t.Errorf("%d frames, want %d", len(frames), tc.frames)
			}
		})
	}
}
