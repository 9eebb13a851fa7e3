package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
)

// WithServers sets where the names of the servers come from: source returns them,
// each as "host:port" or "host". The client calls it before it connects for the
// first time, and again each time that an attempt at every server has failed; a
// client that is connected does not ask. If source fails, names no server or a
// faulty one, the client goes on with those that it knows: at first these are the
// servers of the connect string, which may be a chroot alone, or empty. source has
// to return when its context ends, which is after the time of one attempt to connect
// ([WithConnectTimeout]). It is called by one goroutine at a time.
func WithServers(source func(context.Context) ([]string, error)) Option {
	return optionFunc(func(cfg *config) {
		if source == nil {
			cfg.faults = append(cfg.faults, errors.New("framework: source of servers: must not be nil"))
		}
		cfg.source = source
	})
}

// askForServers asks the source of servers, if there is one. A new session's
// wire does so while that of the session before may still be ending, but not dialling.
func (s *session) askForServers() {
	if s.core.cfg.source == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.attemptLimit())
	defer cancel()
	servers, err := s.core.cfg.ask(ctx)
	if err != nil {
		if s.ended() == nil {
			s.core.failed("", fmt.Errorf("source of servers: %w", err))
		}
		return
	}
	s.core.found(s, servers)
}

// ask returns what the source of servers says.
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

// found makes s go to the servers that the source named.
func (c *core) found(s *session, servers []string) {
	c.mu.Lock()
	changed := !slices.Equal(c.servers.given, servers)
	c.servers.given = servers
	now := c.servers
	c.mu.Unlock()
	if changed {
		c.log.Info("the source of servers names others", zap.Strings(fieldServers, servers))
		s.hosts.Update(now.first(), now.fallback())
	}
}
