package query

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"
)

const (
	maxAnswer     = 64 << 10
	serverTimeout = 3 * time.Second
)

// fourLetters sends one of ZooKeeper's four-letter words to the server and returns its answer. With a
// config it does so by TLS.
func fourLetters(ctx context.Context, addr, word string, config *tls.Config) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	dial := new(net.Dialer).DialContext
	if config != nil {
		dial = (&tls.Dialer{Config: config}).DialContext
	}
	conn, err := dial(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	read, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if len(read) > 0 && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // a server ends TLS without saying so
	}
	return string(read), err
}
