package framework

import (
	"fmt"
	"slices"
)

// Reconfigure makes the client go to other servers of its ensemble, as a
// connect string names them; its chroot must be the client's. Where the present
// server is not among them the connection moves, and the session with it. It
// returns at once. An error says all that is wrong with the connect string, and
// that nothing was changed.
func (c *Client) Reconfigure(connect string) error {
	parsed, err := parseConnectString(connect)
	if err == nil && parsed.chroot != c.core.cfg.chroot {
		err = fmt.Errorf("framework: connect string: chroot %q: must be the client's, %q", parsed.chroot, c.core.cfg.chroot)
	}
	if err != nil {
		return err
	}
	c.core.reconfigure(parsed.servers)
	return nil
}

// Servers returns the servers that the client goes to, as "host:port".
func (c *Client) Servers() []string { return slices.Clone(c.core.currentServers()) }

func (c *core) reconfigure(servers []string) {
	c.mu.Lock()
	c.servers = servers
	s := c.running
	c.mu.Unlock()
	if s != nil {
		s.reconfigure(servers)
	}
}

func (c *core) currentServers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers
}

// begin makes s the session that is running, with the servers of this moment.
func (c *core) begin(s *session, servers []string) {
	c.mu.Lock()
	c.running = s
	now := c.servers
	c.mu.Unlock()
	if !slices.Equal(servers, now) { // Reconfigure was called in between
		s.reconfigure(now)
	}
}
