package zkserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// T is the session timeout that most tests use: what a client that asks for it gets
// with the default tick.
const T = 10 * time.Second

// Error codes of the protocol that the tests name.
const (
	errNoNode        = -101
	errNoAuth        = -102
	errNodeExists    = -110
	errUnimplemented = -6
)

// virtually runs the body in virtual time, with a server that ends with it.
func virtually(t *testing.T, body func(t *testing.T, srv *zkserver.Server), opts ...zkserver.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { body(t, zkserver.Run(t, opts...)) })
}

// virtualSubtest is virtually in a subtest.
func virtualSubtest(t *testing.T, name string, body func(t *testing.T, srv *zkserver.Server), opts ...zkserver.Option) {
	t.Helper()
	t.Run(name, func(t *testing.T) { virtually(t, body, opts...) })
}

// dial connects to a front end without a handshake. The connection ends with the test.
func dial(t testing.TB, srv *zkserver.Server, addr string) net.Conn {
	t.Helper()
	nc := must.Get(srv.Dial(context.Background(), "tcp", addr))(t)
	t.Cleanup(func() { nc.Close() })
	return nc
}

// connect opens a session on front end 0.
func connect(t testing.TB, srv *zkserver.Server) *client {
	t.Helper()
	return connectTo(t, srv, 0)
}

// connectTo opens a session on front end number i.
func connectTo(t testing.TB, srv *zkserver.Server, i int) *client {
	t.Helper()
	c := must.Get(handshake(dial(t, srv, srv.Frontend(i).Addr()), T, 0, 0, nil))(t)
	if c.session == 0 {
		t.Fatal("session refused")
	}
	return c
}

// resumeOn resumes c's session on a new connection to front end number i.
func resumeOn(t testing.TB, srv *zkserver.Server, i int, c *client) *client {
	t.Helper()
	return must.Get(handshake(dial(t, srv, srv.Frontend(i).Addr()), T, 0, c.session, c.password))(t)
}

// do sends a request, expects it to succeed, and returns its answer's body.
func (c *client) do(t testing.TB, op int32, fields ...any) []byte {
	t.Helper()
	got := c.call(t, op, fields...)
	if got.err != 0 {
		t.Fatalf("op %d %.60q: error %d", op, fmt.Sprint(fields...), got.err)
	}
	return got.body
}

// fails sends a request and expects an error.
func (c *client) fails(t testing.TB, want int32, op int32, fields ...any) {
	t.Helper()
	if got := c.call(t, op, fields...); got.err != want {
		t.Errorf("op %d %.60q: error %d, want %d", op, fmt.Sprint(fields...), got.err, want)
	}
}

// succeeds expects the next frame to be an answer without an error.
func (c *client) succeeds(t testing.TB) {
	t.Helper()
	if got := must.Get(c.receive())(t); got.err != 0 {
		t.Errorf("got %+v, want an answer without an error", got)
	}
}

// node creates a node and returns its path.
func (c *client) node(t testing.TB, path string, flags int) string {
	t.Helper()
	return string(c.do(t, create, path, []byte("x"), open(), flags)[4:])
}

// has reports whether the client is told that a node exists.
func (c *client) has(t testing.TB, path string) bool {
	t.Helper()
	got := c.call(t, exists, path, false)
	if got.err != 0 && got.err != errNoNode {
		t.Fatalf("exists %s: error %d", path, got.err)
	}
	return got.err == 0
}

// idle pings often enough for d.
func (c *client) idle(t testing.TB, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); ; {
		c.do(t, ping)
		left := time.Until(end)
		if left <= 0 {
			return
		}
		<-time.After(min(left, T/3))
	}
}

// pass lets virtual time pass, and all that is due at its end happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// closed expects the server to have closed the connection, once what it has sent
// before has been read.
func (c *client) closed(t testing.TB) {
	t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, c.r); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection is open: %v", err)
	}
}

// silent expects that nothing comes for d.
func (c *client) silent(t testing.TB, d time.Duration) {
	t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(d))
	if b, err := c.r.Peek(1); err == nil {
		t.Errorf("got a frame that begins with %x, want none for %v", b, d)
	} else if ne := net.Error(nil); !errors.As(err, &ne) || !ne.Timeout() {
		t.Errorf("the connection failed: %v", err)
	}
	c.nc.SetReadDeadline(time.Time{})
}

// event expects an event to be the next frame.
func (c *client) event(t testing.TB, kind int32, path string) {
	t.Helper()
	got := must.Get(c.receive())(t)
	want := body(kind, 3, path)
	if got.xid != -1 || string(got.body) != string(want) {
		t.Errorf("got xid %d body %q, want event %d on %s", got.xid, got.body, kind, path)
	}
}
