package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
)

// A Resolver returns the addresses of a host's name.
type Resolver = func(ctx context.Context, host string) (addrs []string, err error)

// ErrNoServers is the fault of an attempt to connect if a source names no server.
var ErrNoServers = errors.New("there is no server to connect to")

// A Target is the server and address of one attempt to connect.
type Target struct {
	Server string // host:port as it was given: TLS verifies this host
	Addr   string // host:port to dial; "" for the server as it was given
}

// DialAddr returns what to dial, as "host:port".
func (t Target) DialAddr() string { return cmp.Or(t.Addr, t.Server) }

// Among reports whether t is one of servers.
func (t Target) Among(servers []string) bool {
	return slices.Contains(servers, t.Server) || slices.Contains(servers, t.Addr)
}

// String returns the server, and the address if that differs.
func (t Target) String() string {
	if t.Addr == "" || t.Addr == t.Server {
		return t.Server
	}
	return t.Server + " (" + t.Addr + ")"
}

// Resolved returns a target for each address of the server's name, in a random order. If resolve is
// nil or t has its address, that is t alone. If there is no error, it returns at least one.
func (t Target) Resolved(ctx context.Context, resolve Resolver) ([]Target, error) {
	if resolve == nil || t.Addr != "" {
		return []Target{t}, nil
	}
	host, port, err := net.SplitHostPort(t.Server)
	if err != nil {
		return nil, err
	}
	addrs, err := resolve(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = errors.New("it names no address")
	}
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", host, err)
	}
	targets := make([]Target, len(addrs))
	for i, addr := range addrs {
		targets[i] = Target{t.Server, net.JoinHostPort(addr, port)}
	}
	return Shuffled(targets), nil
}

// Shuffled returns the list in a random order.
func Shuffled[E any](list []E) []E {
	order := slices.Clone(list)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}
