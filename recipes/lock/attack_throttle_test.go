package lock_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
)

// A throttlingConn is a connection whose server refuses deletes for a while, as a
// server does whose request throttling drops stale requests (ZooKeeper 3.7 on). Of its
// answer Java says "Operation was throttled and not executed at all. Please, retry!", no more.
type throttlingConn struct {
	net.Conn
	refusals *atomic.Int32

	mu      sync.Mutex
	deletes map[int32]bool // by xid
	greeted bool
	pending []byte
}

const throttled = -127

func (c *throttlingConn) Write(p []byte) (int, error) {
	if len(p) >= 12 && binary.BigEndian.Uint32(p[8:]) == 2 {
		c.mu.Lock()
		c.deletes[int32(binary.BigEndian.Uint32(p[4:]))] = true
		if c.refusals.Add(-1) >= 0 {
			c.mu.Unlock()
			binary.BigEndian.PutUint32(p[8:], 3) // is executed as an exists instead
			q := append(append([]byte{}, p[:len(p)-4]...), 0)
			binary.BigEndian.PutUint32(q, uint32(len(q)-4))
			if _, err := c.Conn.Write(q); err != nil {
				return 0, err
			}
			return len(p), nil
		}
		delete(c.deletes, int32(binary.BigEndian.Uint32(p[4:])))
		c.mu.Unlock()
	}
	return c.Conn.Write(p)
}

func (c *throttlingConn) Read(p []byte) (int, error) {
	if len(c.pending) == 0 {
		var length [4]byte
		if _, err := io.ReadFull(c.Conn, length[:]); err != nil {
			return 0, err
		}
		frame := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(c.Conn, frame); err != nil {
			return 0, err
		}
		c.mu.Lock()
		if c.greeted && c.deletes[int32(binary.BigEndian.Uint32(frame))] {
			frame = frame[:16]
			code := int32(throttled)
			binary.BigEndian.PutUint32(frame[12:], uint32(code))
		}
		c.greeted = true
		c.mu.Unlock()
		binary.BigEndian.PutUint32(length[:], uint32(len(frame)))
		c.pending = append(length[:], frame...)
	}
	n := copy(p, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

// A deletion that the server was too busy for is done later.
func TestNoGhostWhenTheServerThrottlesTheDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/attack/throttled"
		srv := virtualServer(t)
		var refusals atomic.Int32
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := srv.Dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &throttlingConn{Conn: conn, refusals: &refusals, deletes: map[int32]bool{}}, nil
		}
		c := virtualClient(t, srv, framework.WithDialer(dial))
		lease := mustLock(t, newMutex(t, c, path))
		refusals.Store(1)
		t.Logf("release: %v", lease.Release(t.Context()))
		await(time.Minute)
		if left := znodesBelow(srv, path); len(left) != 0 {
			t.Errorf("the deletion was given up: %q", left)
		}
	})
}
