package zkserver

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"
)

// fullVersion is what the four-letter words say, and what monitoring tools parse.
func (c *config) fullVersion() string {
	return fmt.Sprintf("%d.%d.%d-docent-zkserver, built on 01/01/2024 00:00 UTC", c.version.Major, c.version.Minor, c.version.Patch)
}

// fourLetter answers the administrator's words that tools rely on, and returns ""
// for everything else.
func (s *Server) fourLetter(word string, f *Frontend) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch word {
	case "ruok":
		return "imok"
	case "isro":
		if f.readOnly != nil {
			return "ro"
		}
		return "rw"
	case "srvr":
		return s.versionLine() + s.serverStats(f)
	case "stat":
		return s.versionLine() + "Clients:\n" + cons(f) + "\n" + s.serverStats(f)
	case "mntr":
		return s.mntr(f)
	case "dump":
		return s.dump()
	case "envi":
		return "Environment:\nzookeeper.version=" + s.config.fullVersion() + "\n"
	case "conf":
		return fmt.Sprintf("tickTime=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\n", s.config.tick.Milliseconds(),
			s.config.minTimeout.Milliseconds(), s.config.maxTimeout.Milliseconds())
	case "wchs":
		return wchs(f)
	case "cons":
		return cons(f)
	}
	return ""
}

func (s *Server) mode(f *Frontend) string {
	switch {
	case f.readOnly != nil:
		return "read-only"
	case len(s.frontends) > 1 && f.leads():
		return "leader"
	case len(s.frontends) > 1:
		return "follower"
	}
	return "standalone"
}

func (s *Server) versionLine() string { return "Zookeeper version: " + s.config.fullVersion() + "\n" }

// serverStats has ZooKeeper's lines. The server measures neither latencies nor packets, and says 0.
func (s *Server) serverStats(f *Frontend) string {
	return fmt.Sprintf("Latency min/avg/max: 0/0.0/0\nReceived: 0\nSent: 0\nConnections: %d\nOutstanding: 0\nZxid: 0x%x\nMode: %s\nNode count: %d\n",
		len(f.conns), f.view().zxid, s.mode(f), len(f.view().nodes)-1)
}

func (s *Server) mntr(f *Frontend) string {
	ephemerals := 0
	for _, paths := range f.view().ephemerals {
		ephemerals += len(paths)
	}
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "zk_%s\t%v\n", key, value) }
	line("version", s.config.fullVersion())
	line("server_state", s.mode(f))
	line("num_alive_connections", len(f.conns))
	line("znode_count", len(f.view().nodes)-1)
	line("ephemerals_count", ephemerals)
	line("watch_count", f.watches.count())
	line("global_sessions", len(s.sessions))
	return b.String()
}

func (s *Server) dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(s.sessions), len(s.sessions))
	for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
		sess := s.sessions[id]
		fmt.Fprintf(&b, "1 expire at %s:\n\t0x%x\n", sess.latest.Add(sess.timeout).Format(time.UnixDate), id)
	}
	fmt.Fprintf(&b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(s.tree.ephemerals))
	for _, id := range slices.Sorted(maps.Keys(s.tree.ephemerals)) {
		fmt.Fprintf(&b, "0x%x:\n", id)
		for _, path := range s.tree.ephemeralsOf(id) {
			fmt.Fprintf(&b, "\t%s\n", path)
		}
	}
	return b.String()
}

func wchs(f *Frontend) string {
	watching := map[*conn]watchMode{}
	paths := map[string]struct{}{}
	for _, table := range []*watchTable{f.watches.data, f.watches.child} {
		for path, watchers := range table.byPath {
			paths[path] = struct{}{}
			maps.Copy(watching, watchers)
		}
	}
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n",
		len(watching), len(paths), f.watches.count())
}

// cons has a line for each session that is attached to the front end, with 0 for all that is not
// counted here. A client that came by a pipe has no port.
func cons(f *Frontend) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(f.attach)) {
		c := f.attach[id]
		addr := c.ip + ":0"
		if tcp, ok := c.net.RemoteAddr().(*net.TCPAddr); ok {
			addr = tcp.String()
		}
		fmt.Fprintf(&b, " /%s[1](queued=0,recved=0,sent=0,sid=0x%x,lop=NA,est=%d,to=%d,"+
			"lcxid=0x0,lzxid=0x0,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)\n",
			addr, id, c.since.UnixMilli(), c.session.timeout.Milliseconds())
	}
	return b.String()
}
