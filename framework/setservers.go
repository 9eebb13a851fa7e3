package framework

import (
	"fmt"
	"slices"

	"github.com/docent-go/docent/framework/internal/session"
)

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
