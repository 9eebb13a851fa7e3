package zkproxy

import (
	"context"
	"net"
	"time"

	"github.com/docent-go/docent/internal/pace"
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

// timerSlack is how late Go's timers may fire: the runtime waits in whole
// milliseconds.
const timerSlack = 1500 * time.Microsecond

// sleepExactly returns at the given time, to within some tens of microseconds where
// the system allows it. It returns ctx's error if ctx ends more than timerSlack
// before.
func sleepExactly(ctx context.Context, due time.Time) error {
	if err := sleep(ctx, due.Add(-timerSlack)); err != nil {
		return err
	}
	if left := time.Until(due); left > 0 {
		nap(left)
	}
	return ctx.Err()
}

// sleep returns at the given time, or with ctx's error when ctx ends. It waits by
// a timer alone, as is needed where time is virtual.
func sleep(ctx context.Context, due time.Time) error {
	left := time.Until(due)
	if left <= 0 {
		return nil
	}
	return pace.Sleep(ctx, left)
}
