package sim_test

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"
)

// A line is one client's connection to the servers. It can be cut, or be dead without a
// notification, and has delays.
type line struct {
	env   *environment
	owner *client

	mu      sync.Mutex
	r       *rand.Rand
	refuses bool
	swallow bool // the bytes arrive nowhere, and no side is notified
	conns   map[*lineConn]struct{}
}

type lineConn struct {
	net.Conn
	line *line
}

func newLine(c *client, r *rand.Rand) *line {
	return &line{env: c.env, owner: c, r: r, conns: map[*lineConn]struct{}{}}
}

// dial connects to a front end that the line chooses: which one does not depend on
// the client's own dice.
func (l *line) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuses {
		return nil, syscall.ECONNREFUSED
	}
	fronts := l.env.srv.Frontends()
	conn, err := l.env.srv.Dial(ctx, network, fronts[l.r.IntN(len(fronts))].Addr())
	if err != nil {
		return nil, err
	}
	c := &lineConn{l.env.bug.dialed(conn), l}
	l.conns[c] = struct{}{}
	return c, nil
}

func (l *line) set(refuses, swallow bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuses, l.swallow = refuses, swallow
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Conn.Close()
	}
	clear(l.conns)
}

// look returns whether what passes is lost, and how long it takes if not.
func (l *line) look() (lost bool, takes time.Duration) {
	base := l.env.plan.latency
	l.mu.Lock()
	defer l.mu.Unlock()
	if base > 0 {
		takes = base/2 + time.Duration(l.r.Int64N(int64(base)))
	}
	return l.swallow, takes
}

func (c *lineConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil {
			return n, err
		}
		lost, takes := c.line.look()
		if !lost {
			pass(takes)
			return n, nil
		}
	}
}

func (c *lineConn) Write(p []byte) (int, error) {
	lost, takes := c.line.look()
	if lost {
		return len(p), nil
	}
	pass(takes)
	return c.Conn.Write(p)
}

func (c *lineConn) Close() error {
	c.line.mu.Lock()
	delete(c.line.conns, c)
	c.line.mu.Unlock()
	return c.Conn.Close()
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
