package framework_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
)

// A rawServer answers the wire client byte by byte, as no real server would. Its dialer
// connects by pipes, so it works in virtual time.
type rawServer struct {
	greet  func() []byte                      // the whole first frame; nil for a good one
	answer func(xid, opcode int32) [][]byte   // bodies of the frames that answer a request; nil for good ones
	frames func(xid, opcode int32) (b []byte) // whole frames in place of answer, as they are

	mu    sync.Mutex
	ends  []net.Conn
	dials int
	done  sync.WaitGroup
}

// raw returns a client of srv that ends, and whose server ends, with the test.
func raw(t testing.TB, srv *rawServer, opts ...framework.Option) *framework.Client {
	t.Helper()
	t.Cleanup(srv.close)
	return newClient(t, "raw.test", append([]framework.Option{framework.WithDialer(srv.dial)}, opts...)...)
}

func (srv *rawServer) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.dials++
	srv.ends = append(srv.ends, server)
	srv.done.Go(func() { srv.serve(server) })
	return client, nil
}

// connections returns how many connections were made.
func (srv *rawServer) connections() int {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.dials
}

func (srv *rawServer) close() {
	srv.mu.Lock()
	for _, end := range srv.ends {
		_ = end.Close() // it may be closed
	}
	srv.mu.Unlock()
	srv.done.Wait()
}

// serve answers one connection until it ends.
func (srv *rawServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }() // whatever ended it
	if _, err := frameFrom(conn); err != nil {
		return
	}
	greeting := frameOf(goodGreeting(4 * time.Second))
	if srv.greet != nil {
		greeting = srv.greet()
	}
	if _, err := conn.Write(greeting); err != nil {
		return
	}
	for {
		request, err := frameFrom(conn)
		if err != nil || len(request) < 8 {
			return
		}
		if _, err := conn.Write(srv.reply(request)); err != nil {
			return
		}
	}
}

func (srv *rawServer) reply(request []byte) (frames []byte) {
	xid, opcode := int32(binary.BigEndian.Uint32(request)), int32(binary.BigEndian.Uint32(request[4:]))
	if srv.frames != nil {
		if b := srv.frames(xid, opcode); b != nil {
			return b
		}
	}
	bodies := [][]byte{goodReply(xid, opcode)}
	if srv.answer != nil {
		if answers := srv.answer(xid, opcode); answers != nil {
			bodies = answers
		}
	}
	for _, body := range bodies {
		frames = append(frames, frameOf(body)...)
	}
	return frames
}

func frameFrom(conn net.Conn) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head))
	_, err := io.ReadFull(conn, body)
	return body, err
}

func frameOf(body []byte) []byte { return append(be(int32(len(body))), body...) }

// be encodes numbers as the protocol does: an int32, an int64. It leaves a string unchanged.
func be(values ...any) (b []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case int32:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		case byte:
			b = append(b, v)
		case string:
			b = append(b, v...)
		case []byte:
			b = append(b, v...)
		}
	}
	return b
}

func goodGreeting(timeout time.Duration) []byte {
	return be(0, int32(timeout/time.Millisecond), int64(7), 16, make([]byte, 17))
}

// statBytes is a Stat of a znode that transaction 1 created.
func statBytes() []byte {
	return be(int64(1), int64(1), int64(0), int64(0), 0, 0, 0, int64(0), 0, 0, int64(1))
}

// replyBody is a reply without an error.
func replyBody(xid int32, body ...any) []byte {
	return append(be(xid, int64(1), 0), be(body...)...)
}

// goodReply is a reply that every request can be happy with.
func goodReply(xid, opcode int32) []byte {
	switch opcode {
	case 3, 5, 7: // exists, setData, setACL
		return replyBody(xid, statBytes())
	case 4: // getData
		return replyBody(xid, 2, "ok", statBytes())
	case 6: // getACL
		return replyBody(xid, 1, 31, 5, "world", 6, "anyone", statBytes())
	case 9: // sync
		return replyBody(xid, 1, "/")
	case 12: // getChildren2
		return replyBody(xid, 2, 1, "a", 2, "bc", statBytes())
	case 14: // multi
		return replyBody(xid, -1, byte(1), -1)
	case 15, 19, 21: // creates
		return replyBody(xid, 2, "/a", statBytes())
	case 16: // reconfig
		return replyBody(xid, 9, "version=1", statBytes())
	case 103, 107: // getEphemerals, whoAmI
		return replyBody(xid, 0)
	}
	return replyBody(xid)
}
