package soak_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// A scene is the client and the ways to its servers.
type scene struct {
	client  *framework.Client
	servers []*zktest.Server
	proxies []*zkproxy.Proxy // one in front of each server
	turn    int
	secret  int // number of the present credential
}

// A fault is one disturbance. It returns when the disturbance is over.
type fault func(ctx context.Context, s *scene) error

func faults() []fault {
	return []fault{cut, expire, changeServers, blackhole, rotate, rotateUnconnected}
}

// disturb does one fault after the other until ctx ends, and counts them.
func (s *scene) disturb(ctx context.Context, each time.Duration, count func()) error {
	all := faults()
	for ; ; s.turn++ {
		select {
		case <-time.After(each):
		case <-ctx.Done():
			return nil
		}
		if err := all[s.turn%len(all)](ctx, s); err != nil && ctx.Err() == nil {
			return err
		}
		count()
		for _, p := range s.proxies {
			p.Heal()
			p.ResetRequests() // they would add up
		}
	}
}

func cut(_ context.Context, s *scene) error {
	for _, p := range s.proxies {
		p.Cut()
	}
	return nil
}

// expire ends the client's session at the ensemble.
func expire(ctx context.Context, s *scene) error {
	for _, p := range s.proxies {
		p.Refuse()
	}
	for i, p := range s.proxies {
		for _, session := range p.Sessions() {
			p.Cut()
			limit, cancel := context.WithTimeout(ctx, 5*time.Second)
			_ = zktest.KillSession(limit, s.servers[i].Addr(), session.ID, session.Password) // it may be over already
			cancel()
		}
	}
	return nil
}

// changeServers gives the client another list of servers.
func changeServers(_ context.Context, s *scene) error {
	var addrs []string
	for i, p := range s.proxies {
		if i != s.turn/len(faults())%len(s.proxies) {
			addrs = append(addrs, p.Addr())
		}
	}
	return s.client.SetServers(strings.Join(addrs, ","))
}

// rotate gives the client another password for its user.
func rotate(ctx context.Context, s *scene) error {
	s.secret++
	limit, cancel := context.WithTimeout(ctx, rotationLimit)
	defer cancel()
	return s.client.AddAuth(limit, "digest", fmt.Appendf(nil, "soak:%d", s.secret))
}

// rotateUnconnected does so while the client has no connection.
func rotateUnconnected(ctx context.Context, s *scene) error {
	if err := cut(ctx, s); err != nil {
		return err
	}
	return rotate(ctx, s)
}

// rotationLimit bounds the rotation of a credential. A server can be reached all the time.
const rotationLimit = 10 * time.Second

// blackhole withholds everything for long enough that the client looks for another server.
func blackhole(ctx context.Context, s *scene) error {
	for _, p := range s.proxies {
		p.Blackhole(zkproxy.Both)
	}
	select {
	case <-time.After(700 * time.Millisecond):
	case <-ctx.Done():
	}
	return nil
}
