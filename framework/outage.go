package framework

import (
	"net"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/zktel"
)

// Bounds of the pause between two log lines about failed attempts to connect. The pause doubles
// with each line, so that a long outage does not fill the log.
const (
	firstOutagePause = 10 * time.Second
	maxOutagePause   = 5 * time.Minute
)

// Fields of the log line about failed attempts to connect.
const (
	fieldAttempts = "zookeeper.client.connection.attempts"
	fieldOutage   = "zookeeper.client.connection.outage"
)

// An outage is what a client knows of its attempts to connect since it was last Connected. The zero
// value has no failure.
type outage struct {
	since    time.Time // the first failure; zero if there is none
	attempts int       // attempts that failed
	logAt    time.Time // the next failure after this is logged
	pause    time.Duration
}

// fails counts a failure and reports whether to log it: the first is logged, then one at growing
// intervals.
func (o *outage) fails(now time.Time) bool {
	o.attempts++
	switch {
	case o.since.IsZero():
		o.since, o.pause = now, firstOutagePause
	case now.Before(o.logAt):
		return false
	default:
		o.pause = min(2*o.pause, maxOutagePause)
	}
	o.logAt = now.Add(o.pause)
	return true
}

// failed keeps err as the reason why there is no connection, and logs it if fails says so. server
// is the address of the attempt, as "host:port".
func (c *core) failed(server string, err error) {
	now := time.Now()
	c.mu.Lock()
	c.lastFault = err
	due := c.outage.fails(now)
	attempts, since := c.outage.attempts, c.outage.since
	c.mu.Unlock()
	if !due {
		return
	}
	fields := append(serverFields(server), zap.Int(fieldAttempts, attempts), zap.Duration(fieldOutage, now.Sub(since)),
		zap.String(zktel.AttrErrorType, ErrorType(err)), zap.Error(err))
	c.log.Warn("cannot connect", fields...)
}

// serverFields returns the fields of a log line that name a server.
func serverFields(server string) []zap.Field {
	if server == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return []zap.Field{zap.String(zktel.AttrServerAddress, server)}
	}
	fields := []zap.Field{zap.String(zktel.AttrServerAddress, host)}
	if n, err := strconv.Atoi(port); err == nil && n != DefaultPort {
		fields = append(fields, zap.Int(zktel.AttrServerPort, n))
	}
	return fields
}
