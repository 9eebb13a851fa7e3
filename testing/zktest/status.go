package zktest

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// A Mode is what a server is to its ensemble, in ZooKeeper's words.
type Mode string

// The modes of a server that serves clients.
const (
	Standalone Mode = "standalone"
	Leader     Mode = "leader"
	Follower   Mode = "follower"
	Observer   Mode = "observer"
)

// A status is a server's answer to srvr.
type status struct {
	mode     Mode
	zxid     uint64
	received int64
}

// Mode returns what the server is now. It returns an error while it serves no
// clients, as a member of an ensemble does that has no leader.
func (s *Server) Mode(ctx context.Context) (Mode, error) {
	st, err := s.status(ctx)
	return st.mode, err
}

// Requests returns how many packets clients have sent to this run of the server:
// handshakes, requests and pings, without this Server's own questions.
func (s *Server) Requests(ctx context.Context) (int64, error) {
	st, err := s.status(ctx)
	if err != nil {
		return 0, err
	}
	return st.received - s.words.Load(), nil
}

// Watches returns how many watches clients have at the server: each path counts
// once for each connection.
func (s *Server) Watches(ctx context.Context) (int, error) {
	answer, err := s.FourLetter(ctx, "wchs")
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(field(answer, "Total watches"))
	if err != nil {
		return 0, unexpected("wchs", answer)
	}
	return n, nil
}

// Ephemerals returns the paths of the ephemeral nodes that the server knows of,
// by session. Only sessions that have any appear.
func (s *Server) Ephemerals(ctx context.Context) (map[int64][]string, error) {
	answer, err := s.FourLetter(ctx, "dump")
	if err != nil {
		return nil, err
	}
	// First come the sessions; after this heading, each line is a session's id
	// with a colon, or a path of its, indented.
	_, list, ok := strings.Cut(answer, "Sessions with Ephemerals")
	if !ok {
		return nil, unexpected("dump", answer)
	}
	ephemerals := make(map[int64][]string)
	var session int64
	for line := range strings.Lines(list) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "0x"):
			id, err := strconv.ParseUint(strings.TrimSuffix(line[2:], ":"), 16, 64)
			if err != nil {
				return nil, unexpected("dump", answer)
			}
			session = int64(id)
		case strings.HasPrefix(line, "/"):
			ephemerals[session] = append(ephemerals[session], line)
		}
	}
	return ephemerals, nil
}

// synced returns how many followers and observers a leader or an observer master keeps up to date.
func (s *Server) synced(ctx context.Context) (followers, observers int, err error) {
	answer, err := s.FourLetter(ctx, "mntr")
	if err != nil {
		return 0, 0, err
	}
	lines := strings.ReplaceAll(answer, "\t", ":")
	for name, n := range map[string]*int{"zk_synced_followers": &followers, "zk_synced_observers": &observers} {
		text := field(lines, name)
		if text == "" { // a follower has no followers, and a leader may have an observer master do the work
			continue
		}
		if *n, err = strconv.Atoi(text); err != nil {
			return 0, 0, unexpected("mntr", answer)
		}
	}
	return followers, observers, nil
}

func (s *Server) status(ctx context.Context) (status, error) {
	answer, err := s.FourLetter(ctx, "srvr")
	if err != nil {
		return status{}, err
	}
	st := status{mode: Mode(field(answer, "Mode"))}
	if st.mode == "" {
		return status{}, fmt.Errorf("zktest: %s: %w", s.Addr(), errNotServing)
	}
	zxid, err := strconv.ParseUint(strings.TrimPrefix(field(answer, "Zxid"), "0x"), 16, 64)
	if err != nil {
		return status{}, unexpected("srvr", answer)
	}
	st.zxid = zxid
	if st.received, err = strconv.ParseInt(field(answer, "Received"), 10, 64); err != nil {
		return status{}, unexpected("srvr", answer)
	}
	return st, nil
}

// field returns the value of the line "name: value", "" if there is none.
func field(answer, name string) string {
	lines := bufio.NewScanner(strings.NewReader(answer))
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && key == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func unexpected(word, answer string) error {
	return fmt.Errorf("zktest: unexpected answer to %s: %.200q", word, answer)
}
