package framework_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

// A shedding has servers refuse transactions by themselves, as a server does that drops
// stale requests to shed load (ZooKeeper 3.7 on). The answer has a zxid.
type shedding struct {
	mu      sync.Mutex // guards following
	on      bool
	refused int
}

func (s *shedding) begin() { s.set(true) }
func (s *shedding) end()   { s.set(false) }

func (s *shedding) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
}

// count returns how many transactions were refused.
func (s *shedding) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// refuses reports whether a transaction is refused now, and counts it.
func (s *shedding) refuses() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on {
		s.refused++
	}
	return s.on
}

func (s *shedding) dialer(srv *zkserver.Server) framework.Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := srv.Dial(ctx, network, addr)
		return &sheddingConn{Conn: conn, server: s, refused: make(map[int32]bool)}, err
	}
}

// A sheddingConn is a connection to such a server.
type sheddingConn struct {
	net.Conn
	server *shedding

	mu      sync.Mutex     // guards following
	refused map[int32]bool // by xid

	pending []byte // only for Read
}

// Write sends a read instead of a transaction that is refused.
func (c *sheddingConn) Write(p []byte) (int, error) {
	const multi, exists = 14, 3
	if len(p) < 12 || binary.BigEndian.Uint32(p[8:]) != multi || !c.server.refuses() {
		return c.Conn.Write(p)
	}
	c.mu.Lock()
	c.refused[int32(binary.BigEndian.Uint32(p[4:]))] = true
	c.mu.Unlock()
	read := append([]byte{0, 0, 0, 14}, p[4:8]...)
	read = append(read, 0, 0, 0, exists, 0, 0, 0, 1, '/', 0)
	if _, err := c.Conn.Write(read); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *sheddingConn) Read(p []byte) (int, error) {
	if len(c.pending) == 0 {
		frame, err := c.frame()
		if err != nil {
			return 0, err
		}
		c.pending = append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
	}
	n := copy(p, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

// frame returns the server's next frame, refused where it answers such a read.
func (c *sheddingConn) frame() ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(c.Conn, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(c.Conn, frame); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused[int32(binary.BigEndian.Uint32(frame))] {
		throttled := int32(-127)
		frame = binary.BigEndian.AppendUint32(frame[:12], uint32(throttled))
	}
	return frame, nil
}
