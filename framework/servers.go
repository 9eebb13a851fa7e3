package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
)

// fieldServers is the field of a log line that lists servers.
const fieldServers = "zookeeper.servers"

// A serverList has the servers of a client, as "host:port".
type serverList struct {
	given   []string // from the connect string, SetServers or the source
	tracked []string // from the ensemble's configuration; empty if it names none
}

// first returns the servers that are tried first.
func (s serverList) first() []string {
	if len(s.tracked) > 0 {
		return s.tracked
	}
	return s.given
}

// fallback returns the servers that are tried when all servers of first have failed.
func (s serverList) fallback() []string {
	if len(s.tracked) > 0 {
		return s.given
	}
	return nil
}

func (s serverList) equal(other serverList) bool {
	return slices.Equal(s.given, other.given) && slices.Equal(s.tracked, other.tracked)
}

// A connectString is a parsed connect string: "h1:2181,h2,[::1]:2183/chroot".
type connectString struct {
	servers []string // host:port, at least one
	chroot  string   // "" or a valid path that is not "/"
}

// parseConnectString returns the parsed s, or all faults of s. If s has an @, something before it may
// be a secret, wherever its commas, colons and slashes cut it. Then there is one fault, which shows
// nothing before the last @.
func parseConnectString(s string) (connectString, error) {
	parsed, faults := parseServersAndChroot(s)
	switch {
	case len(faults) == 0:
		return parsed, nil
	case strings.Contains(s, "@"):
		return connectString{}, fmt.Errorf("framework: connect string %q: must be servers and a chroot, as in "+
			"\"h1:2181,h2:2181/chroot\", without a scheme and without a credential, see WithAuth", redacted(s))
	case strings.Contains(s, "://"):
		return connectString{}, fmt.Errorf("framework: connect string %q: must not have a scheme", errtype.Shortened(s))
	}
	return connectString{}, errors.Join(faults...)
}

// parseServersAndChroot is parseConnectString with faults that show every value.
func parseServersAndChroot(s string) (parsed connectString, faults []error) {
	hosts, chroot := s, ""
	if i := strings.IndexByte(s, '/'); i >= 0 {
		hosts, chroot = s[:i], s[i:]
	}
	if chroot != "" && chroot != "/" {
		if err := ValidatePath(chroot); err != nil {
			faults = append(faults, fmt.Errorf("framework: connect string: chroot: %w", err))
		}
		if strings.Contains(chroot, ",") {
			faults = append(faults, fmt.Errorf("framework: connect string: chroot %q: must not contain a comma: "+
				"it is the same for all servers, and follows the last", errtype.Shortened(chroot)))
		}
		parsed.chroot = chroot
	}
	if strings.TrimSpace(hosts) == "" {
		return parsed, append(faults, fmt.Errorf("framework: connect string %q: must name at least one server", errtype.Shortened(s)))
	}
	for entry := range strings.SplitSeq(hosts, ",") {
		server, err := parseServer(strings.TrimSpace(entry))
		if err != nil {
			faults = append(faults, fmt.Errorf("framework: connect string: server %q: %w", errtype.Shortened(entry), err))
			continue
		}
		parsed.servers = append(parsed.servers, server)
	}
	return parsed, faults
}

// parseSourced is parseConnectString for a client whose servers come from a source: s may be only a
// chroot, or empty.
func parseSourced(s string) (connectString, error) {
	if s != "" && !strings.HasPrefix(s, "/") {
		return parseConnectString(s)
	}
	parsed, err := parseConnectString("source" + s)
	parsed.servers = nil
	return parsed, err
}

// parseServer returns entry as host:port.
func parseServer(entry string) (string, error) {
	host, port, err := cutPort(entry)
	if err != nil {
		return "", err
	}
	if host == "" {
		return "", errors.New("host must not be empty")
	}
	isForeign := func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("[]/,", r) }
	if i := strings.IndexFunc(host, isForeign); i >= 0 {
		return "", fmt.Errorf("host must not contain %q", host[i])
	}
	if strings.HasPrefix(entry, "[") && net.ParseIP(strings.SplitN(host, "%", 2)[0]) == nil {
		return "", errors.New("must be a valid IPv6 address within the brackets")
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("port %q: must be a number from 1 to 65535", port)
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), nil
}

// cutPort cuts entry in host and port. The port is ZooKeeper's if entry has none.
func cutPort(entry string) (host, port string, err error) {
	bracketed := strings.HasPrefix(entry, "[")
	switch {
	case strings.Contains(entry, "@"):
		return "", "", errors.New("must not contain a credential, see WithAuth")
	case strings.ContainsAny(entry, ";| \t\r\n"):
		return "", "", errors.New("must be one server: commas separate servers")
	case bracketed && strings.HasSuffix(entry, "]"):
		return entry[1 : len(entry)-1], strconv.Itoa(proto.DefaultPort), nil
	case bracketed, strings.Count(entry, ":") == 1:
		if host, port, err = net.SplitHostPort(entry); err != nil {
			return "", "", errors.New("must be host, host:port or [IPv6]:port")
		}
		return host, port, nil
	case strings.Contains(entry, ":"):
		return "", "", errors.New("an IPv6 address must stand in brackets")
	}
	return entry, strconv.Itoa(proto.DefaultPort), nil
}

// redacted returns s without a possible credential before its last @.
func redacted(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return "***" + s[i:]
	}
	return s
}

// WithServers sets the source of the servers' names: source returns them, each as "host:port" or
// "host". The client calls it before it connects for the first time, and again each time that an
// attempt at every server has failed. While the client is connected, it does not call source.
//
// If source fails, names no server or an invalid one, the client keeps its servers. At first these
// are the servers of the connect string, which may be only a chroot, or empty. source has to return
// when its context ends, which is after the time of one attempt to connect ([WithConnectTimeout]).
// One goroutine at a time calls it.
func WithServers(source func(context.Context) ([]string, error)) Option {
	return optionFunc(func(cfg *config) {
		cfg.require("source of servers", source != nil)
		cfg.source = source
	})
}

// askForServers asks the source of servers, if there is one. A new session's wire may do so while
// the earlier session's wire is still ending, but not while that wire dials.
func (c *core) askForServers(s *session.Session) {
	if c.cfg.source == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.Context(), s.AttemptLimit())
	defer cancel()
	servers, err := c.cfg.ask(ctx)
	if err != nil {
		if s.Ended() == nil {
			c.failed("", fmt.Errorf("source of servers: %w", err))
		}
		return
	}
	c.mu.Lock()
	changed := !slices.Equal(c.servers.given, servers)
	c.servers.given = servers
	now := c.servers
	c.mu.Unlock()
	if changed {
		c.log.Info("the source of servers names others", zap.Strings(fieldServers, servers))
		s.UpdateServers(now.first(), now.fallback())
	}
}

// ask returns the servers that the source names.
func (cfg *config) ask(ctx context.Context) ([]string, error) {
	names, err := cfg.source(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("it names no server")
	}
	servers := make([]string, len(names))
	for i, name := range names {
		servers[i], err = parseServer(name)
		if err != nil {
			return nil, fmt.Errorf("server %q: %w", redacted(name), err)
		}
	}
	return servers, nil
}

// SetServers makes the client connect to other servers of its ensemble, as a connect string names
// them; its chroot must be the client's. If the present server is not among them, the client moves
// to a new server with its session. Before that it awaits the replies to requests that were sent, for
// T/8 or a second, whichever is shorter; T is the session timeout. Later requests wait for the new
// connection. An attempt to connect that is under way ends, and the next attempt goes to the new
// servers. SetServers returns at once. If the connect string is invalid, the error has all its
// faults, and nothing is changed.
func (c *Client) SetServers(connect string) error {
	parsed, err := parseConnectString(connect)
	if err == nil && parsed.chroot != c.core.cfg.chroot {
		err = fmt.Errorf("framework: connect string: chroot %q: must be the client's, %q", redacted(parsed.chroot), c.core.cfg.chroot)
	}
	if err != nil {
		return err
	}
	c.core.setServers(func(s *serverList) { *s = serverList{given: parsed.servers} })
	return nil
}

// Servers returns the servers to which the client connects, as "host:port".
func (c *Client) Servers() []string { return slices.Clone(c.core.currentServers().first()) }

// Server returns the server that the client is connected to, as "host:port", or "" if it is connected to none.
func (c *Client) Server() string {
	s := c.core.current()
	if s == nil || !s.Serves() {
		return ""
	}
	return s.ServerAddr()
}

// setServers changes the client's servers by a function. It calls the function with the present
// list, with mu held.
func (c *core) setServers(change func(*serverList)) {
	c.mu.Lock()
	change(&c.servers)
	now, running := c.servers, []*session.Session{c.running, c.readOnly.session}
	c.mu.Unlock()
	for _, s := range running {
		if s != nil {
			s.SetServers(now.first(), now.fallback())
		}
	}
}

func (c *core) currentServers() serverList {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers
}

// begin makes s the running session, with the servers of this moment.
func (c *core) begin(s *session.Session, begun serverList) {
	c.mu.Lock()
	c.running = s
	now := c.servers
	c.mu.Unlock()
	if !begun.equal(now) { // SetServers was called in between
		s.SetServers(now.first(), now.fallback())
	}
}

// Faults of a user's function that end an attempt to connect.
var (
	errDialPanicked   = errors.New("the dialer, or a function of the TLS configuration, panicked")
	errNothingDialled = errors.New("the dialer returned neither a connection nor an error")
)

// connect makes a TCP connection, and TLS on it if that is configured. If the user's dialer panics,
// the attempt fails. If it does not return when ctx ends, connect does.
func (cfg *config) connect(ctx context.Context, t hosts.Target) (net.Conn, error) {
	return usercall.Bounded(ctx, cfg.calls, func() (conn net.Conn, err error) {
		err = errDialPanicked
		usercall.Guard(cfg.logger.Named("zk"), "WithDialer", func() { conn, err = cfg.dialSecured(ctx, t) })
		return conn, err
	}, func(conn net.Conn) { _ = conn.Close() }) // too late to be of use
}

func (cfg *config) dialSecured(ctx context.Context, t hosts.Target) (net.Conn, error) {
	conn, err := cfg.dial(ctx, "tcp", t.DialAddr())
	if conn == nil && err == nil {
		err = errNothingDialled
	}
	if err != nil || cfg.tls == nil {
		return conn, err
	}
	tlsConfig := cfg.tls
	if tlsConfig.ServerName == "" { // also for a VerifyConnection, which checks the name by itself
		host, _, err := net.SplitHostPort(t.Server)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		tlsConfig = tlsConfig.Clone()
		tlsConfig.ServerName, _, _ = strings.Cut(host, "%") // no certificate has an IPv6 address's zone
	}
	secured := tls.Client(conn, tlsConfig)
	if err := secured.HandshakeContext(ctx); err != nil {
		if isCut(err) || errors.As(err, new(tls.RecordHeaderError)) { // ZooKeeper's plain port takes a hello for a huge request
			err = fmt.Errorf("TLS handshake: %w: this port may speak no TLS", err)
		}
		return nil, errors.Join(err, conn.Close())
	}
	return secured, nil
}

// isCut reports whether err is the end of a connection by its peer.
func isCut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}
