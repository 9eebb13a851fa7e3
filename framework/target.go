package framework

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
)

// A Resolver returns the addresses that a host's name stands for, as
// net.DefaultResolver.LookupHost does.
type Resolver func(ctx context.Context, host string) (addrs []string, err error)

// errNoServers is why there is no connection where a source names no server.
var errNoServers = errors.New("there is no server to connect to")

// A target is what one attempt to connect goes to.
type target struct {
	server string // host:port as it was given: TLS verifies this host
	addr   string // host:port to dial; "" for the server as it was given
}

func (t target) dialAddr() string {
	if t.addr == "" {
		return t.server
	}
	return t.addr
}

// among reports whether t is one of servers.
func (t target) among(servers []string) bool {
	return slices.Contains(servers, t.server) || slices.Contains(servers, t.addr)
}

func (t target) String() string {
	if t.addr == "" || t.addr == t.server {
		return t.server
	}
	return t.server + " (" + t.addr + ")"
}

// resolved returns a target for each address that the server's name stands for,
// in a random order; at least one, if there is no error.
func (t target) resolved(ctx context.Context, resolve Resolver) ([]target, error) {
	host, port, err := net.SplitHostPort(t.server)
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
	targets := make([]target, len(addrs))
	for i, addr := range addrs {
		targets[i] = target{t.server, net.JoinHostPort(addr, port)}
	}
	return shuffled(targets), nil
}
