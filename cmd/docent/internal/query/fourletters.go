package query

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

const (
	maxAnswer     = 64 << 10
	serverTimeout = 3 * time.Second
)

// fourLetters sends one of ZooKeeper's four-letter words to the server and returns its answer.
func fourLetters(ctx context.Context, addr, word string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	read, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	return string(read), err
}
