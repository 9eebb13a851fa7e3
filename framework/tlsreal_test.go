package framework_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/freeport"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// The tests of this file start real servers with TLS by Netty, whose key store and trust store are
// PEM files that the tests write.

// secureServer returns a server with a secure port, and a dialer that leads any name there.
func secureServer(t *testing.T, keyStore, trustStore string) (*zktest.Server, framework.Option) {
	t.Helper()
	addr := freeport.Addr(t)
	_, port := must.Get2(net.SplitHostPort(addr))(t)
	server := zktest.Run(t,
		zktest.WithSetting("secureClientPort", port),
		zktest.WithSetting("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory"),
		zktest.WithSetting("authProvider.x509", "org.apache.zookeeper.server.auth.X509AuthenticationProvider"),
		zktest.WithSetting("ssl.keyStore.location", keyStore), zktest.WithSetting("ssl.keyStore.type", "PEM"),
		zktest.WithSetting("ssl.trustStore.location", trustStore), zktest.WithSetting("ssl.trustStore.type", "PEM"),
		zktest.WithSetting("ssl.hostnameVerification", "false"),
		zktest.WithJVMFlags(nettyFlags(t)...))
	return server, framework.WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	})
}

// trust writes the certificates of authorities to a trust store.
func trust(t *testing.T, file string, authorities ...*authority) {
	t.Helper()
	var all bytes.Buffer
	for _, ca := range authorities {
		all.Write(ca.pem)
	}
	must.OK(t, os.WriteFile(file, all.Bytes(), 0o600))
}

// roots returns the certificates of an authority as a client trusts them.
func (ca *authority) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.pem)
	return pool
}

// pair returns a new certificate and its key.
func (ca *authority) pair(t *testing.T, name string) tls.Certificate {
	t.Helper()
	file := ca.write(t, filepath.Join(t.TempDir(), name+".pem"), name)
	pair := must.Get(tls.LoadX509KeyPair(file, file))(t)
	return pair
}

// TestTLS_reloads_a_real_servers_certificates changes the authority of both sides by the recipe of
// docs/security.md. ZooKeeper 3.8.0 reads its stores at its start alone.
func TestTLS_reloads_a_real_servers_certificates(t *testing.T) {
	t.Parallel()
	before, after, dir := newAuthority(t), newAuthority(t), t.TempDir()
	trustStore := filepath.Join(dir, "trust.pem")
	trust(t, trustStore, before)
	keyStore := before.write(t, filepath.Join(dir, "server.pem"), "zk.test")
	server, lead := secureServer(t, keyStore, trustStore)

	first, second := before.pair(t, "first.test"), after.pair(t, "second.test")
	var store credentialsStore
	store.set(before.roots(), first)
	c := connect(t, "zk.test:2281", lead, framework.WithTLS(store.config()), framework.WithSessionTimeout(time.Minute))
	id := c.Session().ID
	wantX509(t, c, "CN=first.test")

	after.write(t, keyStore, "zk.test")
	trust(t, trustStore, after)
	must.OK(t, server.Restart(within(t, patience)))
	for _, tc := range []struct {
		what  string
		roots *x509.CertPool
		own   tls.Certificate
	}{
		{"with the earlier roots", before.roots(), second},
		{"with the earlier certificate", after.roots(), first},
	} {
		store.set(tc.roots, tc.own)
		zktest.Eventually(t, patience, "the connection ends", func() bool { return c.State() != connected })
		wantErr(t, tc.what, c.AwaitConnected(within(t, 2*time.Second)), framework.ErrNotConnected, context.DeadlineExceeded)
	}
	store.set(after.roots(), second)
	if err := c.AwaitConnected(within(t, patience)); err != nil || c.Session().ID != id {
		t.Fatalf("session %#x, want %#x: %v", c.Session().ID, id, err)
	}
	wantX509(t, c, "CN=second.test")
}

// wantX509 fails the test unless the server takes c for the owner of the certificate.
func wantX509(t *testing.T, c *framework.Client, subject string) {
	t.Helper()
	ids, err := c.WhoAmI(within(t, patience))
	if err != nil || !slices.Contains(ids, framework.Identity{Scheme: "x509", ID: subject}) {
		t.Errorf("the server takes it for %v, %v; want %s", ids, err, subject)
	}
}
