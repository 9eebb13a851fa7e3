package framework

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
)

// A Config is an ensemble's dynamic configuration.
type Config struct {
	// Version is the number of the transaction that made the configuration. A later configuration
	// has a greater number.
	Version int64
	// Members are the servers, in the order of the configuration. A standalone server has none.
	Members []Member
	// Text is the whole configuration as the ensemble keeps it, with groups and weights.
	Text string
}

// A Member is a server of an ensemble.
type Member struct {
	ID int64
	// Peers are the addresses for other servers, each as
	// "host:quorum port:election port".
	Peers []string
	// Observer is true if the member has no vote.
	Observer bool
	// Clients are the addresses for clients, each as "host:port". If the configuration names no
	// host for clients, there is one for each host of the member. If the port is only in the
	// server's own file, there is none.
	Clients []string
	// SecureClients are the addresses for clients with TLS, in the form of Clients. Servers older
	// than ZooKeeper 3.10 name none.
	SecureClients []string
}

// parseEnsembleConfig returns the parsed text, and its lines that could not be parsed. A line of a
// member is
//
//	server.<id>=<host>:<port>:<port>[|<host>:<port>:<port>…][:<role>][;[<client>][;[<secure client>]]]
//
// where an address for clients is [<host>:]<port>, and an IPv6 address has brackets.
func parseEnsembleConfig(text string) (Config, error) {
	config := Config{Text: text, Version: -1}
	var faults []error
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		id, isMember := strings.CutPrefix(key, "server.")
		switch {
		case isMember:
			member, err := parseMember(id, value)
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", key, err))
				continue
			}
			config.Members = append(config.Members, member)
		case key == "version":
			version, err := strconv.ParseInt(value, 16, 64)
			if err != nil {
				faults = append(faults, fmt.Errorf("version %q: must be a hexadecimal number", value))
				continue
			}
			config.Version = version
		}
	}
	return config, errors.Join(faults...)
}

func parseMember(id, value string) (Member, error) {
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return Member{}, errors.New("its id must be a number")
	}
	m := Member{ID: number}
	parts := strings.Split(value, ";")
	if len(parts) > 3 {
		return Member{}, errors.New("more than two addresses for clients")
	}
	var hosts []string
	for peer := range strings.SplitSeq(parts[0], "|") {
		host, rest, err := cutHost(peer)
		if err != nil {
			return Member{}, err
		}
		ports := strings.Split(rest, ":")
		if len(ports) < 2 || len(ports) > 3 {
			return Member{}, fmt.Errorf("peer address %q: must be host:port:port", peer)
		}
		m.Observer = m.Observer || len(ports) == 3 && ports[2] == "observer"
		m.Peers = append(m.Peers, net.JoinHostPort(host, ports[0])+":"+ports[1])
		hosts = append(hosts, host)
	}
	for i, addrs := range []*[]string{&m.Clients, &m.SecureClients} {
		if i+1 >= len(parts) || parts[i+1] == "" {
			continue
		}
		if *addrs, err = clientAddrs(parts[i+1], hosts); err != nil {
			return Member{}, err
		}
	}
	return m, nil
}

// cutHost cuts "host:rest" or "[IPv6]:rest" in two.
func cutHost(addr string) (host, rest string, err error) {
	var after string
	if inside, ok := strings.CutPrefix(addr, "["); ok {
		host, after, _ = strings.Cut(inside, "]")
		after, ok = strings.CutPrefix(after, ":")
		if host != "" && ok {
			return host, after, nil
		}
	} else if host, after, _ = strings.Cut(addr, ":"); host != "" && after != "" {
		return host, after, nil
	}
	return "", "", fmt.Errorf("address %q: must begin with a host and a port", addr)
}

// clientAddrs returns the addresses of "[host:]port". If there is no host, or the host means all
// addresses of a machine, there is one address for each of hosts.
func clientAddrs(addr string, hosts []string) ([]string, error) {
	port := addr
	if i := strings.LastIndexByte(addr, ':'); i >= 0 {
		port = addr[i+1:]
		host := strings.TrimSuffix(strings.TrimPrefix(addr[:i], "["), "]")
		if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
			hosts = []string{host}
		}
	}
	var addrs []string
	for _, host := range hosts {
		server, err := parseServer(net.JoinHostPort(host, port))
		if err != nil {
			return nil, fmt.Errorf("address %q for clients: %w", addr, err)
		}
		addrs = append(addrs, server)
	}
	return addrs, nil
}

// serversFor returns the servers to which a client connects, sorted. A client with TLS connects to
// secure addresses. If a member names none, as before ZooKeeper 3.10, the client uses the port that
// all given servers have. It never uses a port that may be plain.
func (c Config) serversFor(secure bool, given []string) []string {
	var servers []string
	for _, m := range c.Members {
		switch {
		case !secure:
			servers = append(servers, m.Clients...)
		case len(m.SecureClients) > 0:
			servers = append(servers, m.SecureClients...)
		default:
			servers = append(servers, atPortOf(m.Clients, given)...)
		}
	}
	slices.Sort(servers)
	return slices.Compact(servers)
}

// atPortOf returns addrs with the port that all of given have; none if the ports differ.
func atPortOf(addrs, given []string) []string {
	ports := make([]string, len(given))
	for i, server := range given {
		_, ports[i], _ = net.SplitHostPort(server) // already parsed before
	}
	if ports = slices.Compact(ports); len(ports) != 1 {
		return nil
	}
	moved := make([]string, len(addrs))
	for i, addr := range addrs {
		host, _, _ := net.SplitHostPort(addr) // already parsed before
		moved[i] = net.JoinHostPort(host, ports[0])
	}
	return moved
}

// Config returns the ensemble's dynamic configuration, as the leader had it when the call began or
// later. Chroot and namespace do not apply to it. It is retried by the client's policy until ctx
// ends.
//
// Errors:
//
//   - [ErrNoNode] from servers older than ZooKeeper 3.5;
//   - [ErrNoAuth] if an operator has restricted it;
//   - the errors of every operation.
func (c *Client) Config(ctx context.Context) (Config, error) {
	config, err := do(ctx, c.core, request{op: "config", path: configPath, session: c.session}, func(ctx context.Context, s *session.Session) (Config, error) {
		if err := session.Effect(ctx, s, requests.Sync(configPath)); err != nil {
			return Config{}, err
		}
		found, err := session.Call(ctx, s, requests.Get(configPath))
		if err != nil {
			return Config{}, err
		}
		return readConfig(found.Data)
	})
	return config, c.Root().callError(ctx, "config", configPath, err)
}

func readConfig(data []byte) (Config, error) {
	config, err := parseEnsembleConfig(string(data))
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", zkerr.ErrServer, err)
	}
	return config, nil
}

// A ConfigChange is a change of an ensemble's servers: either Join and Leave, or Members.
type ConfigChange struct {
	// Join are servers to add, each as "server.5=host:2888:3888:participant;2181". If the id is a
	// member's, that member is changed.
	Join []string
	// Leave are the ids of servers to remove.
	Leave []int64
	// Members are all servers of the new configuration, in the form of Join. It excludes Join and
	// Leave.
	Members []string
}

func (ch ConfigChange) validate() error {
	switch incremental := len(ch.Join)+len(ch.Leave) > 0; {
	case incremental && len(ch.Members) > 0:
		return errors.New("change: must not have Members beside Join or Leave")
	case !incremental && len(ch.Members) == 0:
		return errors.New("change: must have Join, Leave or Members")
	}
	for _, server := range append(append([]string(nil), ch.Join...), ch.Members...) {
		id, value, _ := strings.Cut(server, "=")
		if _, err := parseMember(strings.TrimPrefix(id, "server."), value); err != nil || strings.ContainsAny(server, ",\n") {
			return fmt.Errorf("change: server %q: must be one server.<id>=<host>:<port>:<port>[:<role>];[<host>:]<port>", server)
		}
	}
	return nil
}

// body returns the request's body.
func (ch ConfigChange) body(version int64) []byte {
	leave := make([]string, len(ch.Leave))
	for i, id := range ch.Leave {
		leave[i] = strconv.FormatInt(id, 10)
	}
	var b []byte
	for _, list := range [][]string{ch.Join, leave, ch.Members} {
		if len(list) == 0 {
			b = binary.BigEndian.AppendUint32(b, 1<<32-1) // null, as a string
			continue
		}
		b = proto.AppendString(b, strings.Join(list, ","))
	}
	return binary.BigEndian.AppendUint64(b, uint64(version))
}

// Reconfig changes the ensemble's dynamic configuration and returns the new configuration, once a
// quorum of both the old and the new servers has committed it. The present version must equal the
// given version; [AnyVersion] matches every version.
//
// Reconfig is not repeated once it may have had an effect. If the connection breaks or ctx ends
// then, the error wraps [ErrUnknownOutcome], and [Client.Config] returns which configuration is
// valid. If the change removes the leader, the leader steps down, which breaks connections.
//
// The servers must have reconfigEnabled=true (code -123), and the client a credential
// with the right to write the configuration ([ErrNoAuth]). Other errors:
//
//   - [ErrBadVersion];
//   - code -14 ([OpError.Code]) while another change is under way;
//   - code -13 if too few of the new servers are up to date;
//   - code -8 if the ensemble refuses the change, such as an address that is used twice;
//   - [ErrUnsupported] from a standalone server;
//   - the errors of every operation.
func (c *Client) Reconfig(ctx context.Context, change ConfigChange, version int64) (Config, error) {
	usercall.Require("ctx", ctx != nil)
	body := change.body(version)
	err := errors.Join(change.validate(), c.core.checkSize(headSize+len(body)))
	if version < AnyVersion {
		err = errors.Join(err, fmt.Errorf("version %d: must be at least 0, or AnyVersion (-1)", version))
	}
	if err != nil {
		return Config{}, c.Root().opError("reconfig", configPath, err)
	}
	config, err := do(ctx, c.core, request{op: "reconfig", path: configPath, session: c.session, once: true}, func(ctx context.Context, s *session.Session) (Config, error) {
		text, err := session.Call(ctx, s, requests.Of(proto.OpReconfig, body, (*proto.Decoder).Text))
		if err != nil {
			return Config{}, err
		}
		return readConfig(text)
	})
	return config, c.Root().callError(ctx, "reconfig", configPath, err)
}

// configPath is the znode in which an ensemble keeps its own configuration.
const configPath = "/zookeeper/config"

// trackPause is the pause after a configuration could not be read or followed. The pauses of the
// client's retry policy come in addition.
const trackPause = 10 * time.Second

// A tracker follows the ensemble's configuration. Only its loop uses its fields.
type tracker struct {
	core    *core
	path    string
	version int64 // of the latest adopted configuration
}

func newTracker(c *core, path string) *tracker { return &tracker{core: c, path: path, version: -1} }

// loop runs until the client is closed. NewClient starts it; Close waits for it.
func (t *tracker) loop() {
	for t.core.awaitUp() && t.core.ctx.Err() == nil { // at Close the state may be Connected
		var pause <-chan time.Time
		w, err := t.core.watch(t.core.ctx, request{op: "watch", path: t.path}, watchreg.Key{Kind: watchreg.Data, Path: t.path})
		if err != nil {
			t.core.log.Warn("cannot read the ensemble's configuration", zap.String(zktel.AttrErrorType, errtype.Of(err)), zap.Error(err))
			pause = time.After(trackPause)
			w = new(Watch) // never fires
		} else if !t.adopt(w.Data()) {
			pause = time.After(trackPause)
		}
		select {
		case <-w.Fired():
		case <-pause:
		case <-t.core.ctx.Done():
		}
	}
}

// adopt makes the client connect to the servers that a configuration names. It ignores a
// configuration that is older than the adopted one, or names none. It returns false if the client
// stays at a removed server because it can reach no other.
func (t *tracker) adopt(text []byte) (done bool) {
	config, err := parseEnsembleConfig(string(text))
	if err != nil {
		t.core.log.Warn("a part of the ensemble's configuration cannot be read", zap.Error(err))
	}
	if config.Version < t.version { // from a server that lags behind
		return true
	}
	t.version = config.Version
	present := t.core.currentServers()
	servers := config.serversFor(t.core.cfg.tls != nil, present.given)
	if len(servers) == 0 {
		return true
	}
	if !slices.Equal(servers, slices.Sorted(slices.Values(present.first()))) {
		t.core.log.Info("the ensemble's configuration names other servers", zap.Strings(fieldServers, servers))
		t.core.setServers(func(list *serverList) { list.tracked = servers })
	}
	return t.moveTo(servers)
}

// moveTo leaves the present server if it is not one of servers, as soon as the client can reach one
// of those. Until then the present connection is better than none.
func (t *tracker) moveTo(servers []string) (done bool) {
	s := t.core.current()
	if s == nil || s.Target().Among(servers) {
		return true
	}
	for _, server := range hosts.Shuffled(servers) {
		if t.reachable(hosts.Target{Server: server}) {
			s.LeaveUnless(servers)
			return true
		}
	}
	return false
}

// reachable reports whether a server accepts a connection at one of its addresses, with TLS if the
// client uses that.
func (t *tracker) reachable(server hosts.Target) bool {
	ctx, cancel := context.WithTimeout(t.core.ctx, t.core.cfg.connectTimeout)
	defer cancel()
	targets, err := server.Resolved(ctx, t.core.cfg.resolve)
	if err != nil {
		return false
	}
	for _, to := range targets {
		if conn, err := t.core.cfg.connect(ctx, to); err == nil {
			_ = conn.Close() // it has shown that the server is reachable
			return true
		}
	}
	return false
}
