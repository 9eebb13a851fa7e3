package fragments_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestSecurityPage_TLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	servers := listenTLS(t, ca)
	certFile, keyFile := ca.issue(t, "client")
	for name, secure := range map[string]func(context.Context) error{
		"files":    func(ctx context.Context) error { return withTLS(ctx, servers, ca.file, certFile, keyFile) },
		"reloaded": func(ctx context.Context) error { return withReloadedTLS(ctx, servers, ca.file, certFile, keyFile) },
	} {
		if err := secure(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := withReloadedTLS(ctx, servers, newAuthority(t).file, certFile, keyFile); err == nil {
		t.Error("a server of another authority is trusted")
	}
}

func withTLS(ctx context.Context, servers, caFile, certFile, keyFile string) error {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return errors.New(caFile + " has no certificate")
	}
	own, err := tls.LoadX509KeyPair(certFile, keyFile) // if the servers ask for one
	if err != nil {
		return err
	}
	client, err := framework.NewClient(servers, // such as "zk1.example:2281,zk2.example:2281"
		framework.WithTLS(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.AwaitConnected(ctx)
}

func withReloadedTLS(ctx context.Context, servers, caFile, certFile, keyFile string) error {
	var own atomic.Pointer[tls.Certificate] // stored again when the file changes
	var roots atomic.Pointer[x509.CertPool] // stored again when that file changes
	config := &tls.Config{
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return own.Load(), nil
		},
		InsecureSkipVerify: true, // because VerifyConnection verifies, by the present roots
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
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return err
	}
	own.Store(&pair)
	authority, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	roots.Store(pool)
	client, err := framework.NewClient(servers, framework.WithTLS(config))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.AwaitConnected(ctx)
}

func TestSecurityPage_digest(t *testing.T) {
	t.Setenv("ZK_PASSWORD", "secret")
	t.Setenv("ZK_NEW_PASSWORD", "new secret")
	servers := listen(t)
	must.OK(t, withDigest(t.Context(), servers))
	anyone := must.Get(framework.NewClient(servers))(t)
	defer anyone.Close()
	if _, _, err := anyone.Get(t.Context(), "/private"); !errors.Is(err, framework.ErrNoAuth) {
		t.Errorf("another client reads a private znode: %v", err)
	}
}

func withDigest(ctx context.Context, servers string) error {
	client, err := framework.NewClient(servers,
		framework.WithAuth("digest", []byte("service:"+os.Getenv("ZK_PASSWORD"))),
		framework.WithACL(acl.Creator()...),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Create(ctx, "/private", nil); err != nil {
		return err
	}
	return rotate(ctx, client)
}

func rotate(ctx context.Context, client *framework.Client) error {
	err := client.AddAuth(ctx, "digest", []byte("service:"+os.Getenv("ZK_NEW_PASSWORD")))
	return err
}

// An operator creates the directory of a lock, and the service locks in it.
func TestSecurityPage_least_privilege(t *testing.T) {
	t.Setenv("ZK_PASSWORD", "secret")
	t.Setenv("OPERATOR_PASSWORD", "other")
	servers := listen(t)
	must.OK(t, createDirectory(t.Context(), servers))
	credential := framework.WithAuth("digest", []byte("service:"+os.Getenv("ZK_PASSWORD")))
	client := must.Get(framework.NewClient(servers, credential))(t)
	defer client.Close()
	mutex := must.Get(lock.NewMutex(client, "/locks/report"))(t)
	must.OK(t, must.Get(mutex.Lock(t.Context()))(t).Release(t.Context()))
}

func createDirectory(ctx context.Context, servers string) error {
	client, err := framework.NewClient(servers)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Create(ctx, "/locks", nil); err != nil {
		return err
	}
	operator := acl.Digest("operator", os.Getenv("OPERATOR_PASSWORD")) // may do everything
	service := acl.Digest("service", os.Getenv("ZK_PASSWORD"))
	service[0].Perms = acl.Create | acl.Read | acl.Delete
	_, err = client.Create(ctx, "/locks/report", nil, framework.WithACL(append(operator, service...)...))
	return err
}

// An embedded server has no SASL: the client is refused.
func TestSecurityPage_SASL(t *testing.T) {
	t.Setenv("ZK_PASSWORD", "secret")
	if err := withSASL(t.Context(), listen(t)); !errors.Is(err, framework.ErrAuthFailed) {
		t.Errorf("a server without SASL: %v, want %v", err, framework.ErrAuthFailed)
	}
}

func withSASL(ctx context.Context, servers string) error {
	client, err := framework.NewClient(servers,
		framework.WithSASL(framework.DigestMD5("service", os.Getenv("ZK_PASSWORD"))),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	_, _, err = client.Get(ctx, "/")
	return err
}

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	ca := &authority{cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the authority of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	ca.file, _ = ca.sign(t, ca.cert)
	return ca
}

// issue returns the files of a certificate for the name, and of its key.
func (ca *authority) issue(t *testing.T, name string) (certFile, keyFile string) {
	t.Helper()
	return ca.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// sign signs the certificate, the authority's own with itself.
func (ca *authority) sign(t *testing.T, cert *x509.Certificate) (certFile, keyFile string) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	if ca.key == nil {
		ca.key = key
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, cert, ca.cert, &key.PublicKey, ca.key))(t)
	secret := must.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	write := func(name, kind string, content []byte) string {
		file := filepath.Join(t.TempDir(), name)
		must.OK(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
		return file
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
}

// listenTLS returns the connect string of an embedded server behind TLS that asks for certificates.
func listenTLS(t *testing.T, ca *authority) string {
	t.Helper()
	server := zkserver.Run(t)
	certFile, keyFile := ca.issue(t, "localhost")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must.Get(os.ReadFile(ca.file))(t))
	listener := must.Get(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{must.Get(tls.LoadX509KeyPair(certFile, keyFile))(t)},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}))(t)
	var running sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { forward(conn, server) })
		}
	})
	_, port := must.Get2(net.SplitHostPort(listener.Addr().String()))(t)
	return net.JoinHostPort("localhost", port)
}

// forward connects the connection with the server until either closes it.
func forward(conn net.Conn, server *zkserver.Server) {
	defer conn.Close()
	inner, err := server.Dial(context.Background(), "tcp", server.Addr())
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(conn, inner); _ = conn.Close() })
	_, _ = io.Copy(inner, conn)
	_ = inner.Close()
	back.Wait()
}
