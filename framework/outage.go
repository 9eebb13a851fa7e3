package framework

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/proto"
)

// Bounds of the pause between two log lines about the same thing. The pause doubles with each line, so
// that neither a long outage nor a server that drops each connection fills the log.
const (
	firstRepeatPause = 10 * time.Second
	maxRepeatPause   = 5 * time.Minute
)

// Fields of the log lines about connections.
const (
	fieldAttempts = "zookeeper.client.connection.attempts"
	fieldOutage   = "zookeeper.client.connection.outage"
	fieldLeftOut  = "zookeeper.client.lines_left_out"
)

// fieldHint is the field of a log line that says what its reader may do.
const fieldHint = "hint"

const hintOutage = "check that most servers run, have room on their disks, and can be reached from here"

// brokenOften is how many breaks of the connection are logged before they are paced. A user who pulls a
// cable sees each.
const brokenOften = 5

// repeats paces the log lines about a thing that repeats: the first ones are written, then one at
// growing intervals. If nothing happens for the longest interval, that begins again. The zero value has
// had no line.
type repeats struct {
	count int       // occurrences
	at    time.Time // of the latest
	logAt time.Time // an occurrence after this is logged
	pause time.Duration
	left  int // occurrences since the last line
}

// due notes an occurrence, and reports whether to log it, and how many were left out before it. The
// first ones are always logged.
func (r *repeats) due(now time.Time, first int) (left int, ok bool) {
	if now.Sub(r.at) > maxRepeatPause {
		r.count = 0
	}
	r.at = now
	switch r.count++; {
	case r.count <= first:
		r.pause = firstRepeatPause
	case now.Before(r.logAt):
		r.left++
		return 0, false
	default:
		r.pause = min(2*r.pause, maxRepeatPause)
	}
	left, r.left = r.left, 0
	r.logAt = now.Add(r.pause)
	return left, true
}

// lines paces the log lines about a client's connections, and that about its chroot. It is guarded by core.mu.
type lines struct {
	breaks   repeats   // of "connection state changed" to Suspended
	failures repeats   // of "cannot connect"
	latest   time.Time // of the lines about breaks and failures
	chroot   bool      // the line about the chroot is written
	shown    bool      // the latest line tells of a connection, so the next one need not be logged
}

// change reports whether to log the change to the state, and how many lines were left out before it. A
// connection that breaks again and again is paced. Its return is logged if the break was, and all other
// changes are.
func (l *lines) change(to State, now time.Time) (left int, ok bool) {
	switch to {
	case Suspended:
		left, ok = l.breaks.due(now, brokenOften)
		l.wrote(now, ok)
		return left, ok
	case Connected:
		if l.breaks.left == 0 {
			l.failures = repeats{} // the next outage's first failure is logged
		}
		ok, l.shown = !l.shown, true
		return 0, ok
	}
	l.shown = false
	return 0, true
}

// failure reports whether to log a failed attempt to connect, in an outage whose first failure was at
// since. An outage of ten seconds without a line gets one, however often the connection broke before.
func (l *lines) failure(now, since time.Time) bool {
	_, ok := l.failures.due(now, 1)
	ok = ok || l.latest.Before(since) && now.Sub(since) >= firstRepeatPause
	l.wrote(now, ok)
	return ok
}

// wrote records that a line about a break or a failure is due, or is left out.
func (l *lines) wrote(now time.Time, due bool) {
	if due {
		l.latest, l.shown = now, false
	}
}

// An outage is what a client knows of its attempts to connect since it was last Connected. The zero
// value has no failure.
type outage struct {
	since    time.Time // the first failure; zero if there is none
	attempts int       // attempts that failed
}

// failed keeps err as the reason why there is no connection, and logs it unless such lines repeat too
// often. server is the address of the attempt, as "host:port".
func (c *core) failed(server string, err error) {
	err = c.cfg.suspected(err)
	now, fault := time.Now(), located(server, err)
	c.mu.Lock()
	c.lastFault = fault
	if c.outage.attempts++; c.outage.attempts == 1 {
		c.outage.since = now
	}
	attempts, since := c.outage.attempts, c.outage.since
	due := c.lines.failure(now, since)
	c.mu.Unlock()
	if !due {
		return
	}
	fields := append(serverFields(server), zap.Int(fieldAttempts, attempts), zap.Duration(fieldOutage, now.Sub(since)),
		zap.String(zktel.AttrErrorType, errtype.Of(err)), zap.Error(err))
	if now.Sub(since) >= firstRepeatPause && !errors.Is(err, ErrAuthFailed) { // a mere break is over by then
		fields = append(fields, zap.String(fieldHint, hintOutage))
	}
	c.log.Warn("cannot connect", fields...)
}

// suspected returns the error of an attempt to connect. If the server said nothing that can be understood, it
// says what servers do that to.
func (cfg *config) suspected(err error) error {
	if cfg.tls == nil && isCut(err) {
		return fmt.Errorf("%w: the server may be starting, or have too many clients, or this port speaks TLS", err)
	}
	return err
}

// located returns err with the server's address unless err has one already, as those of a dial do. The
// peer at a wrong address may accept the connection and close it, or send something else.
func located(server string, err error) error {
	var network *net.OpError
	if server == "" || strings.Contains(err.Error(), server) || errors.As(err, &network) && network.Addr != nil {
		return err
	}
	return fmt.Errorf("%s: %w", server, err)
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
	if n, err := strconv.Atoi(port); err == nil && n != proto.DefaultPort {
		fields = append(fields, zap.Int(zktel.AttrServerPort, n))
	}
	return fields
}
