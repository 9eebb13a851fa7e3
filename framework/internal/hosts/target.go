package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
)

// A Resolver returns the addresses that a host's name stands for.
type Resolver = func(ctx context.Context, host string) (addrs []string, err error)

// ErrNoServers is why there is no connection where a source names no server.
var ErrNoServers = errors.New("there is no server to connect to")

// A Target is what one attempt to connect goes to.
type Target struct {
	Server string // host:port as it was given: TLS verifies this host
	Addr   string // host:port to dial; "" for the server as it was given
}

// DialAddr returns what to dial, as "host:port".
func (t Target) DialAddr() string {
	if t.Addr == "" {
		return t.Server
	}
	return t.Addr
}

// Among reports whether t is one of servers.
func (t Target) Among(servers []string) bool {
	return slices.Contains(servers, t.Server) || slices.Contains(servers, t.Addr)
}

// String returns the server, and the address if that is another.
func (t Target) String() string {
	if t.Addr == "" || t.Addr == t.Server {
		return t.Server
	}
	return t.Server + " (" + t.Addr + ")"
}

// resolved returns a target for each address that the server's name stands for,
// in a random order; at least one, if there is no error.
func (t Target) resolved(ctx context.Context, resolve Resolver) ([]Target, error) {
	host, port, err := net.SplitHostPort(t.Server)
	if err != nil {
		return nil, err
	}
	addrs, err := resolve(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = errors.New("it stands for no address")
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
