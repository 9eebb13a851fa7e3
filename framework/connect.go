package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/internal/usercall"
)

// errDialPanicked is the fault of an attempt to connect in which a function of the user panicked.
var errDialPanicked = errors.New("the dialer, or a function of the TLS configuration, panicked")

// connect makes a TCP connection, and TLS on it if that is configured. If the user's dialer panics,
// the attempt fails.
func (cfg *config) connect(ctx context.Context, t hosts.Target) (conn net.Conn, err error) {
	err = errDialPanicked
	usercall.Guard(cfg.logger.Named("zk"), "WithDialer", func() { conn, err = cfg.dialSecured(ctx, t) })
	return conn, err
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
