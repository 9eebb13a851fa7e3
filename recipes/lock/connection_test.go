package lock_test

import (
	"context"
	"net"
	"sync"
	"syscall"

	"github.com/docent-go/docent/testing/zkserver"
)

// A line is one client's connection to the servers, which can be cut without others noticing.
type connection struct {
	srv *zkserver.Server

	mu      sync.Mutex
	refuses bool
	swallow bool // the bytes arrive nowhere, and no side is notified
	conns   map[*lineConn]struct{}
}

type lineConn struct {
	net.Conn
	line *connection
}

func (l *connection) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuses {
		return nil, syscall.ECONNREFUSED
	}
	conn, err := l.srv.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &lineConn{conn, l}
	l.conns[c] = struct{}{}
	return c, nil
}

func (l *connection) set(refuses, swallow bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuses, l.swallow = refuses, swallow
}

func (l *connection) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Conn.Close()
	}
	clear(l.conns)
}

func (l *connection) swallows() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.swallow
}

func (c *lineConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.line.swallows() {
			return n, err
		}
	}
}

func (c *lineConn) Write(p []byte) (int, error) {
	if c.line.swallows() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}
