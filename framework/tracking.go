package framework

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/zktel"
)

// configPath is the znode in which an ensemble keeps its own configuration.
const configPath = "/zookeeper/config"

// trackPause is the pause after a configuration could not be read or followed. The pauses of the
// client's retry policy come in addition.
const trackPause = 10 * time.Second

// A tracker follows the ensemble's configuration. Only its loop uses its fields.
type tracker struct {
	core    *core
	path    string
	version int64 // of the latest adopted configuration
}

func newTracker(c *core, path string) *tracker { return &tracker{core: c, path: path, version: -1} }

// loop runs until the client is closed. NewClient starts it; Close waits for it.
func (t *tracker) loop() {
	for t.core.awaitUp() && t.core.ctx.Err() == nil { // at Close the state may be Connected
		var pause <-chan time.Time
		w, err := t.core.watch(t.core.ctx, request{op: "watch", path: t.path, repeat: repeatable}, watchreg.Key{Kind: watchreg.Data, Path: t.path})
		if err != nil {
			t.core.log.Warn("cannot read the ensemble's configuration", zap.String(zktel.AttrErrorType, ErrorType(err)), zap.Error(err))
			pause = time.After(trackPause)
			w = new(Watch) // never fires
		} else if !t.adopt(w.Data()) {
			pause = time.After(trackPause)
		}
		select {
		case <-w.Fired():
		case <-pause:
		case <-t.core.ctx.Done():
		}
	}
}

// adopt makes the client connect to the servers that a configuration names. It ignores a
// configuration that is older than the adopted one, or names none. It returns false if the client
// stays at a removed server because it can reach no other.
func (t *tracker) adopt(text []byte) (settled bool) {
	config, err := parseEnsembleConfig(string(text))
	if err != nil {
		t.core.log.Warn("a part of the ensemble's configuration cannot be read", zap.Error(err))
	}
	if config.Version < t.version { // from a server that lags behind
		return true
	}
	t.version = config.Version
	present := t.core.currentServers()
	servers := config.serversFor(t.core.cfg.tls != nil, present.given)
	if len(servers) == 0 {
		return true
	}
	if !slices.Equal(servers, slices.Sorted(slices.Values(present.first()))) {
		t.core.log.Info("the ensemble's configuration names other servers", zap.Strings(fieldServers, servers))
		t.core.setServers(func(list *serverList) { list.tracked = servers })
	}
	return t.moveTo(servers)
}

// moveTo leaves the present server if it is not one of servers, as soon as the client can reach one
// of those. Until then the present connection is better than none.
func (t *tracker) moveTo(servers []string) (settled bool) {
	s := t.core.current()
	if s == nil || s.Target().Among(servers) {
		return true
	}
	for _, server := range hosts.Shuffled(servers) {
		if t.reachable(hosts.Target{Server: server}) {
			s.LeaveUnless(servers)
			return true
		}
	}
	return false
}

// reachable reports whether a server accepts a connection at one of its addresses, with TLS if the
// client uses that.
func (t *tracker) reachable(server hosts.Target) bool {
	ctx, cancel := context.WithTimeout(t.core.ctx, t.core.cfg.connectTimeout)
	defer cancel()
	targets, err := server.Resolved(ctx, t.core.cfg.resolve)
	if err != nil {
		return false
	}
	for _, to := range targets {
		if conn, err := t.core.cfg.connect(ctx, to); err == nil {
			_ = conn.Close() // it has shown that the server is reachable
			return true
		}
	}
	return false
}
