package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/internal/usercall"
)

// errDialPanicked is the fault of an attempt to connect in which a function of the user panicked.
var errDialPanicked = errors.New("the dialer, or a function of the TLS configuration, panicked")

// connect makes a TCP connection, and TLS on it if that is configured. If the user's dialer panics,
// the attempt fails. If it does not return when ctx ends, connect does.
func (cfg *config) connect(ctx context.Context, t hosts.Target) (net.Conn, error) {
	conn, err := usercall.Bounded(ctx, cfg.calls, func() (conn net.Conn, err error) {
		err = errDialPanicked
		usercall.Guard(cfg.logger.Named("zk"), "WithDialer", func() { conn, err = cfg.dialSecured(ctx, t) })
		return conn, err
	}, func(conn net.Conn) { _ = guardedConn{conn}.Close() })
	if err != nil {
		return nil, err
	}
	return guardedConn{conn}, nil
}

// A guardedConn turns a panic of the user's connection, or of a function of the TLS configuration, into
// an error. The wire client calls the connection on its own goroutines, where a panic would end the
// process.
type guardedConn struct{ net.Conn }

// Read is part of [net.Conn], as the following methods are.
func (c guardedConn) Read(p []byte) (n int, err error) {
	defer connPanicked(&err)
	return c.Conn.Read(p)
}

func (c guardedConn) Write(p []byte) (n int, err error) {
	defer connPanicked(&err)
	return c.Conn.Write(p)
}

func (c guardedConn) Close() (err error) {
	defer connPanicked(&err)
	return c.Conn.Close()
}

func (c guardedConn) SetDeadline(t time.Time) (err error) {
	defer connPanicked(&err)
	return c.Conn.SetDeadline(t)
}

func (c guardedConn) SetReadDeadline(t time.Time) (err error) {
	defer connPanicked(&err)
	return c.Conn.SetReadDeadline(t)
}

func (c guardedConn) SetWriteDeadline(t time.Time) (err error) {
	defer connPanicked(&err)
	return c.Conn.SetWriteDeadline(t)
}

// connPanicked recovers from a panic of a connection. It is deferred.
func connPanicked(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("the connection panicked: %v", v)
	}
}

func (cfg *config) dialSecured(ctx context.Context, t hosts.Target) (net.Conn, error) {
	conn, err := cfg.dial(ctx, "tcp", t.DialAddr())
	if err != nil || cfg.tls == nil {
		return conn, err
	}
	tlsConfig := cfg.tls
	if tlsConfig.ServerName == "" { // also for a VerifyConnection, which checks the name by itself
		host, _, err := net.SplitHostPort(t.Server)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		tlsConfig = tlsConfig.Clone()
		tlsConfig.ServerName = host
	}
	secured := tls.Client(conn, tlsConfig)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secured, nil
}
