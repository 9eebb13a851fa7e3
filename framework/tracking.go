package framework

import (
	"net"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// configPath is where an ensemble keeps its own configuration.
const configPath = "/zookeeper/config"

// trackPause is the pause after a configuration could not be read, beside the
// pauses of the client's retry policy.
const trackPause = 10 * time.Second

// track follows the ensemble's configuration until the client is closed.
// NewClient starts it; Close waits for it.
func (c *core) track(path string) {
	for c.ctx.Err() == nil {
		if !c.awaitUp() {
			return
		}
		var pause <-chan time.Time
		w, err := c.watch(c.ctx, request{op: "watch", path: path, repeat: repeatable}, watchKey{WatchData, path})
		if err != nil {
			c.log.Warn("cannot read the ensemble's configuration", zap.String(AttrErrorType, ErrorType(err)), zap.Error(err))
			pause = time.After(trackPause)
			w = new(Watch) // never fires
		} else {
			c.adopt(w.Data())
		}
		select {
		case <-w.Fired():
		case <-pause:
		case <-c.ctx.Done():
		}
	}
}

// adopt goes to the servers that a configuration names, if it names any.
func (c *core) adopt(configuration []byte) {
	servers := ensembleServers(string(configuration))
	present := slices.Sorted(slices.Values(c.currentServers().first()))
	if len(servers) > 0 && !slices.Equal(servers, present) {
		c.log.Info("the ensemble's configuration names other servers", zap.Strings(fieldServers, servers))
		c.reconfigure(func(s *serverList) { s.tracked = servers })
	}
}

// ensembleServers returns the addresses for clients that a dynamic
// configuration names, sorted. Its lines are
//
//	server.<id>=<host>:<port>:<port>[:<role>][|…];[<client host>:]<client port>
//
// of which those without an address for clients, and others, are skipped.
func ensembleServers(configuration string) []string {
	var servers []string
	for line := range strings.Lines(configuration) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		peer, client, ok := strings.Cut(value, ";")
		if !ok || !strings.HasPrefix(key, "server.") {
			continue
		}
		host, port := "", client
		if i := strings.LastIndexByte(client, ':'); i >= 0 {
			host, port = strings.Trim(client[:i], "[]"), client[i+1:]
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = peerHost(peer)
		}
		if server, err := parseServer(net.JoinHostPort(host, port)); err == nil {
			servers = append(servers, server)
		}
	}
	slices.Sort(servers)
	return slices.Compact(servers)
}

// peerHost returns the host of a server's address for its peers.
func peerHost(peer string) string {
	if rest, ok := strings.CutPrefix(peer, "["); ok {
		host, _, _ := strings.Cut(rest, "]")
		return host
	}
	host, _, _ := strings.Cut(peer, ":")
	return host
}
