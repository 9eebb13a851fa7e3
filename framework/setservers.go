package framework

import (
	"fmt"
	"slices"
)

// SetServers makes the client go to other servers of its ensemble, as a
// connect string names them; its chroot must be the client's. If the present
// server is not among them the connection moves, and the session with it; an
// attempt to connect that is in progress ends, and the next one goes to the new
// servers. It returns at once. An error says all that is wrong with the connect
// string, and that nothing was changed.
func (c *Client) SetServers(connect string) error {
	parsed, err := parseConnectString(connect)
	if err == nil && parsed.chroot != c.core.cfg.chroot {
		err = fmt.Errorf("framework: connect string: chroot %q: must be the client's, %q", parsed.chroot, c.core.cfg.chroot)
	}
	if err != nil {
		return err
	}
	c.core.setServers(func(s *serverList) { *s = serverList{given: parsed.servers} })
	return nil
}

// Servers returns the servers that the client goes to, as "host:port".
func (c *Client) Servers() []string { return slices.Clone(c.core.currentServers().first()) }

// setServers changes where the client goes to, by a function that gets what was
// valid until then and is called with mu held.
func (c *core) setServers(change func(*serverList)) {
	c.mu.Lock()
	change(&c.servers)
	now, running := c.servers, []*session{c.running, c.readOnly.session}
	c.mu.Unlock()
	for _, s := range running {
		if s != nil {
			s.setServers(now.first(), now.fallback())
		}
	}
}

func (c *core) currentServers() serverList {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers
}

// begin makes s the session that is running, with the servers of this moment.
func (c *core) begin(s *session, begun serverList) {
	c.mu.Lock()
	c.running = s
	now := c.servers
	c.mu.Unlock()
	if !begun.equal(now) { // SetServers was called in between
		s.setServers(now.first(), now.fallback())
	}
}
