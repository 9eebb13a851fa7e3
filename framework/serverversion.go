package framework

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkversion"
)

// WithVersionCheck makes the client log the version of the first server that it connects to, and the
// known faults of that version that concern locks. ZooKeeper's protocol does not have the version, so the
// client asks by the four-letter word srvr, once, on a connection of its own. Servers answer it unless
// their 4lw.commands.whitelist leaves it out; then the line says so. "docent doctor" asks all servers. The
// default is not to ask: each connection counts against maxClientCnxns, and proxies and dialers may expect
// ZooKeeper's protocol on all of them.
func WithVersionCheck() Option { return optionFunc(func(cfg *config) { cfg.version = true }) }

// Fields of the log line about the server's version.
const (
	fieldVersion = "zookeeper.server.version"
	fieldFaults  = "zookeeper.server.faults"
)

// logVersion logs the version of the first server. NewClient starts it; Close waits for it. It does not
// guess the version from what the server knows, because that does not tell 3.8.0 from 3.8.1, which fixes
// ZOOKEEPER-4537. The level is always info: no known fault makes docent's locks unsafe, and a
// distributor's fixes do not show in the version.
func (c *core) logVersion() {
	if !c.awaitUp() || c.ctx.Err() != nil { // at Close the state may be Connected
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.connectTimeout)
	defer cancel()
	t := c.current().Target()
	text, err := usercall.Bounded(ctx, c.cfg.calls, func() (string, error) { return c.cfg.askVersion(ctx, t) }, nil)
	if c.ctx.Err() != nil {
		return
	}
	fields := serverFields(t.Server)
	if err != nil {
		c.log.Info("the server's version is not known", append(fields, zap.String(zktel.AttrErrorType, errtype.Of(err)), zap.Error(err))...)
		return
	}
	fields = append(fields, zap.String(fieldVersion, text))
	if v, err := zkversion.Parse(text); err == nil { // others than ZooKeeper have versions of their own
		var faults []string
		for _, f := range v.Faults() {
			faults = append(faults, f.String())
		}
		if len(faults) > 0 {
			fields = append(fields, zap.Strings(fieldFaults, faults))
		}
	}
	c.log.Info("the server's version", fields...)
}

// errNoVersion is the fault of a server whose answer to srvr has no version.
var errNoVersion = errors.New("the server does not answer srvr; 4lw.commands.whitelist may leave it out")

// maxSrvr is more than any answer to srvr has, in bytes.
const maxSrvr = 4 << 10

// askVersion asks the server for its version.
func (cfg *config) askVersion(ctx context.Context, t hosts.Target) (string, error) {
	conn, err := cfg.connect(ctx, t)
	if err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		if stop() {
			_ = conn.Close() // nothing was written that could be lost
		}
	}()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", fmt.Errorf("srvr: %w", errors.Join(ctx.Err(), err))
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxSrvr))
	for line := range strings.Lines(string(answer)) {
		// "Zookeeper version: 3.9.3-c26634f, built on …", and ClickHouse Keeper's own.
		if name, text, ok := strings.Cut(line, "version: "); ok && !strings.Contains(name, ":") {
			text, _, _ = strings.Cut(strings.TrimSpace(text), ",")
			return text, nil
		}
	}
	return "", errors.Join(errNoVersion, ctx.Err(), err)
}
