package framework

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
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
