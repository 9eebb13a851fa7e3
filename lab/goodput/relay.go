package main

import (
	"errors"
	"net"
	"sync"
	"time"
)

// A relay carries connections to a server, each direction of each at a rate. It holds little: what it has not
// carried yet waits at the sender.
type relay struct {
	listener net.Listener
	server   string
	rate     int // bytes a second

	mu    sync.Mutex
	conns []net.Conn
	works sync.WaitGroup
}

func newRelay(server string, rate int) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: l, server: server, rate: rate}
	r.works.Go(r.accept)
	return r, nil
}

func (r *relay) addr() string { return r.listener.Addr().String() }

// close ends all connections, and waits for their ends.
func (r *relay) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	for _, c := range r.conns {
		_ = c.Close() // it may have ended
	}
	r.mu.Unlock()
	r.works.Wait()
}

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, client, server)
		r.mu.Unlock()
		r.works.Go(func() { r.carry(client, server) })
		r.works.Go(func() { r.carry(server, client) })
	}
}

const (
	piece        = 4 << 10
	socketBuffer = 64 << 10
)

// carry carries one direction until either end has ended.
func (r *relay) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	_ = errors.Join(from.(*net.TCPConn).SetReadBuffer(socketBuffer), to.(*net.TCPConn).SetWriteBuffer(socketBuffer)) // a larger one is no error
	buf := make([]byte, piece)
	var idle time.Time // when all has been carried
	for {
		n, err := from.Read(buf)
		if now := time.Now(); idle.Before(now) {
			idle = now
		}
		idle = idle.Add(time.Duration(n) * time.Second / time.Duration(r.rate))
		if wait := time.Until(idle); wait > time.Millisecond {
			<-time.After(wait)
		}
		if _, failed := to.Write(buf[:n]); failed != nil || err != nil {
			return
		}
	}
}
