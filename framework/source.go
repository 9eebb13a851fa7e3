package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/session"
)

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
		if source == nil {
			cfg.faults = append(cfg.faults, errors.New("framework: source of servers: must not be nil"))
		}
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
	c.found(s, servers)
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

// found makes s connect to the servers that the source named.
func (c *core) found(s *session.Session, servers []string) {
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
