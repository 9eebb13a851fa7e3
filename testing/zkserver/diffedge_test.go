package zkserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// Beginnings and ends of connections, on both servers.
func TestDifferentialConnections(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		talk func(t *testing.T, e *edge)
	}{
		{"a new session", func(t *testing.T, e *edge) {
			for _, asked := range []time.Duration{0, time.Second / 2, 7 * time.Second, time.Hour, -time.Second} {
				c := e.connect(t, asked, 0, nil)
				e.note("asked for %v: %v, session: %v, password of %d bytes", asked, c.timeout, c.session != 0, len(c.password))
			}
		}},
		{"a client that doesn't know of read-only servers", func(t *testing.T, e *edge) {
			nc := e.dial(t)
			nc.Write(framed(0, int64(0), 5000, int64(0), make([]byte, 16)))
			head := make([]byte, 4)
			_, err := io.ReadFull(nc, head)
			e.note("answer of length %x, %v", head, err)
		}},
		{"a session resumed", func(t *testing.T, e *edge) {
			c := e.connect(t, 5*time.Second, 0, nil)
			again := e.connect(t, 9*time.Second, c.session, c.password)
			e.note("same: %v, timeout %v", again.session == c.session, again.timeout)
			e.drain(c)
			e.answer(t, again, ping)
		}},
		{"a session resumed with the wrong password", func(t *testing.T, e *edge) {
			c := e.connect(t, 5*time.Second, 0, nil)
			again := e.connect(t, 5*time.Second, c.session, make([]byte, 16))
			e.note("session %d, timeout %v, password %x", again.session, again.timeout, again.password)
			e.drain(again)
			e.drain(c)
		}},
		{"a session that is none", func(t *testing.T, e *edge) {
			c := e.connect(t, 5*time.Second, 77, make([]byte, 16))
			e.note("session %d, timeout %v, password %x", c.session, c.timeout, c.password)
			e.drain(c)
		}},
		{"a client that has seen more than the server", func(t *testing.T, e *edge) {
			_, err := handshake(e.dial(t), time.Second, 1<<60, 0, nil)
			e.note("refused: %v", errors.Is(err, io.EOF))
		}},
		{"an operation that is none", func(t *testing.T, e *edge) {
			c := e.connect(t, 5*time.Second, 0, nil)
			e.answer(t, c, 99, "whatever")
			e.drain(c)
		}},
		{"authentication", func(t *testing.T, e *edge) {
			c := e.connect(t, 5*time.Second, 0, nil)
			e.answer(t, c, auth, 0, "digest", []byte("ann:pw"))
			e.answer(t, c, auth, 0, "digest", []byte("nocolon"))
			e.answer(t, c, auth, 0, "ip", []byte("10.0.0.1"))
			e.answer(t, c, auth, 0, "world", []byte("anyone"))
			e.drain(c)
		}},
		{"a frame that is too long", func(t *testing.T, e *edge) {
			c := e.connect(t, 5*time.Second, 0, nil)
			c.nc.Write(body(zkserver.DefaultPacketLimit + 1))
			e.drain(c)
		}},
		{"a session that is closed", func(t *testing.T, e *edge) {
			c := e.connect(t, 5*time.Second, 0, nil)
			e.answer(t, c, closeSession)
			e.drain(c)
			again := e.connect(t, 5*time.Second, c.session, c.password)
			e.note("session %d", again.session)
		}},
		{"a four-letter word", func(t *testing.T, e *edge) {
			nc := e.dial(t)
			nc.Write([]byte("ruok"))
			got, err := io.ReadAll(nc)
			e.note("%q %v", got, err)
		}},
	}
	peer := zktest.Shared(t)
	srv := zkserver.Run(t, zkserver.WithVersion(must.Get(zktest.Version())(t)), zkserver.WithTick(500*time.Millisecond), zkserver.WithSessionTimeouts(time.Second, time.Minute))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ours := &edge{open: func() (net.Conn, error) { return srv.Dial(context.Background(), "", "") }}
			theirs := &edge{open: func() (net.Conn, error) { return net.Dial("tcp", peer.Addr()) }}
			tt.talk(t, ours)
			tt.talk(t, theirs)
			if got, want := ours.log.String(), theirs.log.String(); got != want {
				t.Errorf("zkserver:\n%sZooKeeper:\n%s", got, want)
			}
		})
	}
}

// An edge notes what one of the servers does.
type edge struct {
	open func() (net.Conn, error)
	log  strings.Builder
}

func (e *edge) note(format string, args ...any) { fmt.Fprintf(&e.log, format+"\n", args...) }

func (e *edge) dial(t *testing.T) net.Conn {
	t.Helper()
	nc := must.Get(e.open())(t)
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(10 * time.Second))
	return nc
}

func (e *edge) connect(t *testing.T, asked time.Duration, session int64, password []byte) *client {
	t.Helper()
	return must.Get(handshake(e.dial(t), asked, 0, session, password))(t)
}

// answer notes the answer to a request.
func (e *edge) answer(t *testing.T, c *client, op int32, fields ...any) {
	t.Helper()
	got := c.call(t, op, fields...)
	e.note("op %d: xid %d, zxid is 0: %v, error %d, body %x", op, got.xid, got.zxid == 0, got.err, got.body)
}

// drain notes how the connection ends. Whether by FIN or RST is the network's business.
func (e *edge) drain(c *client) {
	rest, err := io.ReadAll(c.r)
	timeout := net.Error(nil)
	e.note("%d further bytes, then an end: %v", len(rest), !errors.As(err, &timeout) || !timeout.Timeout())
}
