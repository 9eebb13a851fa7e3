package zktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

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
	conn, err := dial(ctx, s.Addr())
	if err != nil {
		return "", err
	}
	defer conn.Close()
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

// dial returns a connection whose reads and writes fail once ctx has ended.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp4", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return &boundConn{Conn: conn, stop: stop}, nil
}

// A boundConn forgets its context when it is closed.
type boundConn struct {
	net.Conn
	stop func() bool
}

func (c *boundConn) Close() error {
	c.stop()
	return c.Conn.Close()
}
