package zkserver

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"time"
)

// Dial connects to the front end that has the address, over a pipe in memory. It has the form of
// net.Dialer's DialContext; network is ignored. A standalone server answers to every address. If
// no front end has the address or accepts connections there, Dial returns an error that errors.Is
// takes for syscall.ECONNREFUSED. If ctx has ended, it returns ctx's error. Dial doesn't wait.
func (s *Server) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, f := range s.frontends {
		if len(s.frontends) > 1 && f.Addr() != addr {
			continue
		}
		client, server := net.Pipe()
		if f.serve(server) {
			return client, nil
		}
	}
	return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: pipeAddr(addr), Err: syscall.ECONNREFUSED}
}

// Dialer returns Dial in the form that github.com/go-zookeeper/zk wants. The timeout
// is ignored, as Dial doesn't wait.
func (s *Server) Dialer() func(network, addr string, timeout time.Duration) (net.Conn, error) {
	return func(network, addr string, _ time.Duration) (net.Conn, error) {
		return s.Dial(context.Background(), network, addr)
	}
}

// pipeAddr is the address of a front end in an error.
type pipeAddr string

func (pipeAddr) Network() string  { return "pipe" }
func (a pipeAddr) String() string { return string(a) }

// Listen has front end 0 also accept TCP connections: see [Frontend.Listen].
func (s *Server) Listen(addr string) (string, error) { return s.frontends[0].Listen(addr) }

// Listen has the front end also accept TCP connections at addr, such as
// "127.0.0.1:0", and returns the address that it has become. Clients can connect
// when it has returned; Server.Close ends it. TCP can't be used in a
// testing/synctest bubble. The error is that of net.Listen, or net.ErrClosed after
// Close, and while the front end is dead.
func (f *Frontend) Listen(addr string) (string, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("zkserver: %w", err)
	}
	s := f.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || f.dead {
		l.Close()
		return "", fmt.Errorf("zkserver: listen on %s: %w", addr, net.ErrClosed)
	}
	f.listen(l)
	return l.Addr().String(), nil
}

// listen serves the listener's connections. It needs Server.mu.
func (f *Frontend) listen(l net.Listener) {
	f.listeners = append(f.listeners, l)
	f.server.running.Go(func() { f.acceptLoop(l) })
}

// acceptLoop is started by listen, ends when the listener is closed, and Server.Close
// waits for it. A connection that is refused is accepted and closed: the listener
// must keep its port.
func (f *Frontend) acceptLoop(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		f.serve(nc)
	}
}
