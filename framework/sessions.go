package framework

import (
	"context"
	"net"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/tap"
)

// newSession returns a session that connects to servers. If readsOnly is true, it connects only to
// read-only servers.
func (c *core) newSession(servers serverList, readsOnly bool) (*session.Session, error) {
	cfg := session.Config{
		Client:         sessionClient{c},
		Log:            c.log,
		Servers:        hosts.New(servers.first(), servers.fallback(), c.cfg.resolve),
		Timeout:        c.cfg.sessionTimeout,
		ConnectTimeout: c.cfg.connectTimeout,
		MaxRequest:     c.cfg.maxRequest,
		MaxReply:       c.cfg.maxReply,
		Margin:         c.cfg.margin,
		Trees:          &c.trees,
		Opcodes:        &c.opcodes,
	}
	if c.cfg.marginGiven {
		cfg.Wanted = c.cfg.leaseMargin
	}
	if readsOnly {
		cfg.ReadOnly, cfg.Client, cfg.Trees = true, readOnlyClient{sessionClient{c}}, nil
	}
	return session.New(c.ctx, cfg)
}

// A sessionClient is the client of its own sessions.
type sessionClient struct{ core *core }

// Connect is part of [session.Client], as the following methods are.
func (c sessionClient) Connect(ctx context.Context, t hosts.Target) (net.Conn, error) {
	return c.core.cfg.connect(ctx, t)
}

func (c sessionClient) StartSASL(ctx context.Context, server string) (tap.Exchange, error) {
	return c.core.cfg.startSASL(ctx, server)
}

func (c sessionClient) Credentials() []tap.Credential { return c.core.credentials.present() }

func (c sessionClient) Refused() bool { return c.core.refused() }

func (c sessionClient) BeginRound(s *session.Session) { c.core.askForServers(s) }

func (c sessionClient) RoundFailed() {
	if c.core.cfg.readOnly {
		c.core.seekReadOnly()
	}
}

func (c sessionClient) Failed(server string, err error) { c.core.failed(server, err) }

func (c sessionClient) Connected(s *session.Session) {
	c.core.transition(Connected, s, nil)
	c.core.credentials.settle(nil)
}

func (c sessionClient) Suspended(s *session.Session, fault error) {
	c.core.transition(Suspended, s, fault)
}

func (c sessionClient) AuthFailed(s *session.Session, fault error) {
	c.core.transition(AuthFailed, s, fault)
	c.core.credentials.settle(ErrAuthFailed)
}

func (c sessionClient) Enter() bool { return c.core.enter() }

func (c sessionClient) Leave() { c.core.wg.Done() }

// A readOnlyClient is the client of sessions at read-only servers.
type readOnlyClient struct{ sessionClient }

func (readOnlyClient) BeginRound(*session.Session) {}
func (readOnlyClient) RoundFailed()                {}

func (c readOnlyClient) Failed(server string, err error)  { c.core.readOnlyFailed(server, err) }
func (c readOnlyClient) Connected(*session.Session)       { c.core.enterReadOnly() }
func (readOnlyClient) Suspended(*session.Session, error)  {}
func (readOnlyClient) AuthFailed(*session.Session, error) {}
