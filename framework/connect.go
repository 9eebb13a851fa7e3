package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// connect makes a TCP connection, and TLS on it if that is configured.
func (cfg *config) connect(ctx context.Context, t target) (net.Conn, error) {
	conn, err := cfg.dial(ctx, "tcp", t.dialAddr())
	if err != nil || cfg.tls == nil {
		return conn, err
	}
	tlsConfig := cfg.tls
	if tlsConfig.ServerName == "" { // also for a VerifyConnection, which checks the name by itself
		host, _, err := net.SplitHostPort(t.server)
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
