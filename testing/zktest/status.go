package zktest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
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

// maxAnswer bounds what is read of an answer: the longest, wchp, names every
// watch.
const maxAnswer = 64 << 20

// FourLetter sends one of ZooKeeper's four-letter words ("mntr", "cons", "dump")
// and returns the answer. It returns when the server has closed the connection,
// which a frozen one never does, or when ctx ends, with ctx's error.
func (s *Server) FourLetter(ctx context.Context, word string) (string, error) {
	if len(word) != 4 {
		return "", fmt.Errorf("zktest: word %q: must have four letters", word)
	}
	answer, err := s.ask(ctx, word)
	if limit, ok := ctx.Deadline(); ok && !time.Now().Before(limit) {
		<-ctx.Done() // the dialer's own timer may have been the first
	}
	if ctx.Err() != nil {
		err = ended(ctx) // and not the closed connection that it led to
	}
	if err != nil {
		return "", fmt.Errorf("zktest: %s to %s: %w", word, s.Addr(), err)
	}
	return answer, nil
}

func (s *Server) ask(ctx context.Context, word string) (string, error) {
	conn, stop, err := dial(ctx, s.Addr())
	if err != nil {
		return "", err
	}
	defer stop()
	s.words.Add(1)
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	return string(answer), err
}

// ended returns the error of a context that has ended, with its cause if that
// does not say the same.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// dial returns a connection whose reads and writes fail once ctx has ended, and what closes it.
func dial(ctx context.Context, addr string) (conn net.Conn, stop func(), err error) {
	var dialer net.Dialer
	if conn, err = dialer.DialContext(ctx, "tcp4", addr); err != nil {
		return nil, nil, err
	}
	forget := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return conn, func() { forget(); _ = conn.Close() }, nil
}
