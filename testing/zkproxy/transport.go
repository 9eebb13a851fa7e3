package zkproxy

import (
	"context"
	"net"
	"time"
)

// A transport is how a proxy reaches its server, and how it waits.
type transport struct {
	dial       func(ctx context.Context) (net.Conn, error)
	sleepUntil func(ctx context.Context, due time.Time) error
}

func tcp(upstream string) transport {
	var d net.Dialer
	return transport{
		dial:       func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", upstream) },
		sleepUntil: sleepExactly,
	}
}

// closeWrite tells the peer that nothing more comes. A connection that can't say so
// and stay open is closed.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // fails only if the peer has closed already
		return
	}
	_ = conn.Close() // as above
}
