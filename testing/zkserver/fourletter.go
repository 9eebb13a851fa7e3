package zkserver

import (
	"fmt"
	"maps"
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
	case "srvr", "stat":
		return s.srvr(f)
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

func (s *Server) srvr(f *Frontend) string {
	return fmt.Sprintf("Zookeeper version: %s\nConnections: %d\nOutstanding: 0\nZxid: 0x%x\nMode: %s\nNode count: %d\n",
		s.config.fullVersion(), len(f.conns), f.view().zxid, s.mode(f), len(f.view().nodes)-1)
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
	watching := map[*conn]struct{}{}
	paths := map[string]struct{}{}
	for _, table := range []*watchTable{f.watches.data, f.watches.child} {
		for c := range table.byConn {
			watching[c] = struct{}{}
		}
		for path := range table.byPath {
			paths[path] = struct{}{}
		}
	}
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n",
		len(watching), len(paths), f.watches.count())
}

func cons(f *Frontend) string {
	var b strings.Builder
	for id, c := range f.attach {
		fmt.Fprintf(&b, " /%s[1](sid=0x%x,to=%d)\n", c.net.RemoteAddr(), id, c.session.timeout.Milliseconds())
	}
	return b.String()
}
