package framework_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/freeport"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// secured returns a dialer to srv by TLS, where each host shows the certificate of
// the name that shown has for it.
func secured(t *testing.T, srv *zkserver.Server, ca *authority, shown map[string]string) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	hosts := make(map[string]*zkproxy.Proxy)
	for host, name := range shown {
		config := &tls.Config{Certificates: []tls.Certificate{ca.pair(t, name)}, MinVersion: tls.VersionTLS12}
		hosts[host] = tlsProxy(t, srv, func() *tls.Config { return config })
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		return hosts[host].Dial(ctx, network, addr)
	}
}

// tlsProxy returns a proxy to srv behind TLS. It takes in what is sent, as TCP does and a bare pipe does not.
func tlsProxy(t *testing.T, srv *zkserver.Server, config func() *tls.Config) *zkproxy.Proxy {
	t.Helper()
	return zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) {
		upstream, err := srv.Dial(ctx, "tcp", srv.Addr())
		if err != nil {
			return nil, err
		}
		near, far := net.Pipe()
		inside := tls.Server(far, config())
		go carry(upstream, inside) // both end with either connection
		go carry(inside, upstream)
		return near, nil
	})
}

// carry copies until one side ends, and then ends both.
func carry(to, from net.Conn) {
	_, _ = io.Copy(to, from) // its error is the end
	_ = to.Close()
	_ = from.Close()
}

func TestTLSVerifiesEachHostsOwnName(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		ca := newAuthority(t)
		roots := ca.roots()
		dial := secured(t, srv, ca, map[string]string{"a.test": "a.test", "b.test": "b.test", "c.test": "a.test", "fe80::1%eth0": "fe80::1"})
		client := func(servers string, config *tls.Config) *framework.Client {
			config.MinVersion = tls.VersionTLS12
			return newClient(t, servers, framework.WithDialer(dial), framework.WithTLS(config), framework.WithRetry(retry.Never()),
				framework.WithConnectTimeout(time.Second))
		}
		c := client("a.test", &tls.Config{RootCAs: roots})
		for _, servers := range []string{"b.test", "[fe80::1%eth0]", "a.test"} { // the session moves from one name to another
			must.OK(t, c.AwaitConnected(within(t, time.Minute)))
			must.OK(t, c.SetServers(servers))
			sleep(time.Second)
			if _, _, err := c.Children(t.Context(), "/"); err != nil {
				t.Errorf("at %s: %v", servers, err)
			}
		}
		_, _, err := client("c.test", &tls.Config{RootCAs: roots}).Children(t.Context(), "/")
		wantErr(t, "a host with the certificate of another", err, framework.ErrNotConnected)
		wantText(t, err, "not c.test")
		_, _, err = client("a.test", &tls.Config{}).Children(t.Context(), "/")
		wantErr(t, "an unknown authority", err, framework.ErrNotConnected)
		wantText(t, err, "unknown authority")
		for name, config := range map[string]*tls.Config{
			"the name that the configuration has": {RootCAs: roots, ServerName: "a.test"},
			"no name where none is verified":      {InsecureSkipVerify: true},
			"the name that a function verifies": {
				InsecureSkipVerify: true,
				VerifyConnection: func(state tls.ConnectionState) error {
					if state.ServerName != "c.test" {
						return fmt.Errorf("asked to verify the name %q", state.ServerName)
					}
					return nil
				},
			},
		} {
			if _, _, err := client("c.test", config).Children(t.Context(), "/"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// reloading is the recipe of docs/security.md, for a service that reads its files again when they change.
func reloading(roots *atomic.Pointer[x509.CertPool], own *atomic.Pointer[tls.Certificate]) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return own.Load(), nil
		},
		InsecureSkipVerify: true, // VerifyConnection verifies
		VerifyConnection: func(state tls.ConnectionState) error {
			intermediates := x509.NewCertPool()
			for _, cert := range state.PeerCertificates[1:] {
				intermediates.AddCert(cert)
			}
			_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
				DNSName: state.ServerName, Roots: roots.Load(), Intermediates: intermediates,
			})
			return err
		},
	}
}

func TestCertificatesAndRootsAreReloaded(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		before, after := newAuthority(t), newAuthority(t)
		var server atomic.Pointer[tls.Config]
		var seen atomic.Value // the name in the client's certificate
		serve := func(ca *authority, name string) {
			server.Store(&tls.Config{
				MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, // by which a refusal is part of the handshake
				Certificates: []tls.Certificate{ca.pair(t, name)}, ClientCAs: ca.roots(), ClientAuth: tls.RequireAndVerifyClientCert,
				VerifyConnection: func(state tls.ConnectionState) error {
					seen.Store(state.PeerCertificates[0].Subject.CommonName)
					return nil
				},
			})
		}
		var roots atomic.Pointer[x509.CertPool]
		var own atomic.Pointer[tls.Certificate]
		trust := func(ca *authority, name string) {
			pair := ca.pair(t, name)
			roots.Store(ca.roots())
			own.Store(&pair)
		}
		serve(before, "zk.test")
		trust(before, "first")
		proxy := tlsProxy(t, srv, server.Load)
		c := connect(t, "zk.test", framework.WithDialer(proxy.Dial), framework.WithTLS(reloading(&roots, &own)), framework.WithSessionTimeout(span))
		id := c.Session().ID
		sleep(time.Second)

		serve(after, "zk.test")
		proxy.Cut()
		sleep(time.Second)
		if c.State() == connected {
			t.Error("connected to a server whose authority is not known yet")
		}
		trust(after, "second")
		if _, _, err := c.Children(t.Context(), "/"); err != nil || c.Session().ID != id {
			t.Fatalf("session %#x, want %#x: %v", c.Session().ID, id, err)
		}
		wantEqual(t, "the client's certificate", seen.Load(), any("second"))

		serve(after, "other.test")
		sleep(time.Second)
		proxy.Cut()
		sleep(time.Second)
		if c.State() == connected {
			t.Error("connected to a server with the certificate of another")
		}
	})
}

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
