package zkproxy

import (
	"context"
	"net"
	"syscall"
	"testing"
)

// pipeAddr is the address of a proxy without a port: an IP literal, which no
// client asks a resolver for, of a range that is kept for documentation.
const pipeAddr = "192.0.2.254:2181"

// StartPipe starts a proxy that is reached within the process, by [Proxy.Dial], in front of the
// server that dial connects to. For package zkserver, that is
//
//	func(ctx context.Context) (net.Conn, error) { return server.Dial(ctx, "tcp", server.Frontend(0).Addr()) }
//
// It is for testing/synctest. In a bubble the proxy runs there, waits in the bubble's time, and
// must be closed before the bubble's function returns. dial must then not leave the bubble either.
// Several goroutines call it, once for each connection. The caller must Close the proxy.
//
// Faults are as over TCP, except for two things that pipes lack. A pipe takes in nothing that the
// proxy has not read, so a client of a proxy that hangs waits in its first write. A client that
// closes the sending half of its connection closes all of it.
func StartPipe(dial func(ctx context.Context) (net.Conn, error)) *Proxy {
	return newProxy(transport{dial: dial, sleepUntil: sleep})
}

// RunPipe is [StartPipe] for a test: it closes the proxy when the test has ended.
func RunPipe(tb testing.TB, dial func(ctx context.Context) (net.Conn, error)) *Proxy {
	tb.Helper()
	p := StartPipe(dial)
	closeAfter(tb, p)
	return p
}

// Dial connects to the proxy, over a pipe in memory, whatever the address. It has the form of
// net.Dialer's DialContext and returns at once. While the proxy refuses connections, and once it
// is closed, it returns an error that errors.Is takes for syscall.ECONNREFUSED. If ctx has ended,
// it returns ctx's error.
func (p *Proxy) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !p.refusing.Load() {
		client, server := net.Pipe()
		if p.serve(server) {
			return client, nil
		}
	}
	return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: literal(addr), Err: syscall.ECONNREFUSED}
}

// literal is an address in an error.
type literal string

func (literal) Network() string  { return "pipe" }
func (l literal) String() string { return string(l) }
