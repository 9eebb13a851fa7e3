package framework_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// secured returns a dialer to srv by TLS, where each host shows the certificate of
// the name that shown has for it.
func secured(t *testing.T, srv *zkserver.Server, ca *authority, shown map[string]string) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	hosts := make(map[string]*zkproxy.Proxy)
	for host, name := range shown {
		file := ca.write(t, filepath.Join(t.TempDir(), "server.pem"), name)
		pair, err := tls.LoadX509KeyPair(file, file)
		if err != nil {
			t.Fatal(err)
		}
		// The proxy takes in what is sent, as TCP does and a bare pipe does not.
		hosts[host] = zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) {
			upstream, err := srv.Dial(ctx, "tcp", srv.ConnectString())
			if err != nil {
				return nil, err
			}
			near, far := net.Pipe()
			inside := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
			go carry(upstream, inside) // both end with either connection
			go carry(inside, upstream)
			return near, nil
		})
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		return hosts[host].Dial(ctx, network, addr)
	}
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
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca.pem)
		dial := secured(t, srv, ca, map[string]string{"a.test": "a.test", "b.test": "b.test", "c.test": "a.test"})
		client := func(servers string, config *tls.Config) *framework.Client {
			config.MinVersion = tls.VersionTLS12
			return newClient(t, servers, framework.WithDialer(dial), framework.WithTLS(config), framework.WithRetry(retry.Never()),
				framework.WithConnectTimeout(time.Second))
		}
		c := client("a.test", &tls.Config{RootCAs: roots})
		for _, servers := range []string{"b.test", "a.test"} { // the session moves from one name to another
			if err := c.AwaitConnected(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.Reconfigure(servers); err != nil {
				t.Fatal(err)
			}
			sleep(time.Second)
			if _, _, err := c.Children(t.Context(), "/"); err != nil {
				t.Errorf("at %s: %v", servers, err)
			}
		}
		_, _, err := client("c.test", &tls.Config{RootCAs: roots}).Children(t.Context(), "/")
		wantErr(t, "a host with the certificate of another", err, framework.ErrNotConnected)
		if err == nil || !strings.Contains(err.Error(), "not c.test") {
			t.Errorf("error %v, want it to name the host", err)
		}
		_, _, err = client("a.test", &tls.Config{}).Children(t.Context(), "/")
		wantErr(t, "an unknown authority", err, framework.ErrNotConnected)
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
