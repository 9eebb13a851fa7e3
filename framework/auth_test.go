package framework_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// A record keeps all that is logged, and all that a test gives it.
type record struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(p)
}

// Sync is part of zapcore.WriteSyncer.
func (r *record) Sync() error { return nil }

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.String()
}

// add keeps every form in which a value might be printed.
func (r *record) add(values ...any) {
	for _, v := range values {
		fmt.Fprintf(r, "%v %+v %#v\n", v, v, v)
	}
}

func (r *record) logger() *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewDevelopmentEncoderConfig()), r, zap.DebugLevel))
}

// check fails the test if a secret is in the record.
func (r *record) check(t *testing.T, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		if line := lineWith(r.String(), secret); line != "" {
			t.Errorf("the secret %q shows: %s", secret, line)
		}
	}
	if !strings.Contains(r.String(), `"connected"`) {
		t.Error("the record has no state change: nothing was checked")
	}
}

func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

const (
	user       = "alice"
	secret     = "s3cr3t-Pa55"
	secretData = "node-c0ntent"
)

func TestDigestCredential(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	proxy := zkproxy.Run(t, server.Addr())
	var rec record
	chroot := fresh(t)
	c := connect(t, proxy.Addr()+chroot, framework.WithAuth("digest", []byte(user+":"+secret)),
		framework.WithACL(acl.Creator()...), framework.WithLogger(rec.logger()),
		framework.WithRetryObserver(func(r framework.Retry) { rec.add(r) }))
	stranger := connect(t, server.Addr()+chroot, framework.WithLogger(rec.logger()))

	mustCreate(t, c, "/mine", secretData)
	_, _, err := stranger.Get(t.Context(), "/mine")
	wantErr(t, "a stranger's get", err, framework.ErrNoAuth)
	rec.add(err)
	acl, _, err := c.ACL(t.Context(), "/mine")
	if err != nil || len(acl) != 1 || acl[0].Scheme != "digest" || !strings.HasPrefix(acl[0].ID, user+":") {
		t.Errorf("ACL %v, %v", acl, err)
	}
	rec.add(acl, acl[0])
	digest := strings.TrimPrefix(acl[0].ID, user+":")

	for range 3 { // it has to be there again after each reconnection
		cut := proxy.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore})
		data, _, err := c.Get(t.Context(), "/mine")
		if err != nil || string(data) != secretData {
			t.Errorf("get across a reconnection: %q, %v", data, err)
		}
		await(t, cut.Hit(), "the cut")
	}
	if n := proxy.Count(fault.SetAuth); n != 1+3 {
		t.Errorf("the credential was sent %d times on 4 connections", n)
	}
	for _, call := range operations(c) {
		rec.add(call(within(t, 2*time.Second)))
	}
	_, err = c.Create(t.Context(), "/mine", []byte(secretData))
	rec.add(err)
	_, err = framework.NewClient("alice:"+secret+"@host:1", framework.WithAuth("", []byte(user+":"+secret)))
	rec.add(err, framework.WithAuth("digest", []byte(user+":"+secret)), c)
	rec.check(t, secret, digest, secretData)
}

func TestRefusedCredential_is_state_and_error(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	var rec record
	var seen trail
	c := newClient(t, proxy.Addr(), framework.WithAuth("nosuchscheme", []byte(secret)), framework.WithLogger(rec.logger()),
		framework.WithRetry(retry.Forever(time.Millisecond)), framework.WithStateListener(seen.add))
	err := c.AwaitConnected(within(t, patience))
	wantErr(t, "AwaitConnected", err, framework.ErrAuthFailed)
	_, _, err = c.Get(within(t, patience), "/")
	wantErr(t, "get", err, framework.ErrAuthFailed)
	seen.await(t, connecting, framework.AuthFailed)
	start, before := time.Now(), proxy.Count(fault.Connect) // it has tried before, for as long as this goroutine was not looking
	zktest.Eventually(t, patience, "it tries again", func() bool { return proxy.Count(fault.Connect) >= before+3 })
	if took := time.Since(start); took < 40*time.Millisecond {
		t.Errorf("three attempts within %v", took)
	}
	if got := seen.states(); len(got) != 2 {
		t.Errorf("states %v, want it to stay AuthFailed", got)
	}
	rec.add(err, `"connected"`)
	rec.check(t, secret)
}

func TestCredential_unanswered_at_reconnection(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	var seen trail
	c := connect(t, proxy.Addr(), framework.WithAuth("digest", []byte(user+":"+secret)), framework.WithStateListener(seen.add),
		framework.WithConnectTimeout(500*time.Millisecond), framework.WithSessionTimeout(20*time.Second))
	held := proxy.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.HoldReply})
	proxy.Cut()
	await(t, held.Hit(), "the credential is sent again")
	must.Get2(c.Get(within(t, patience), "/"))(t)
	seen.await(t, connecting, connected, suspended, connected)
}

func TestTLSWithClientCertificatesOnTheSecurePort(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	dir := t.TempDir()
	trustStore := filepath.Join(dir, "ca.pem")
	trust(t, trustStore, ca)
	_, lead := secureServer(t, ca.write(t, filepath.Join(dir, "server.pem"), "zk.test"), trustStore)
	config := &tls.Config{
		RootCAs: ca.roots(), Certificates: []tls.Certificate{ca.pair(t, "client.test")}, MinVersion: tls.VersionTLS12,
	}

	var rec record
	c := connect(t, "zk.test:2281", framework.WithTLS(config), lead, framework.WithLogger(rec.logger()),
		framework.WithAuth("digest", []byte(user+":"+secret)), framework.WithACL(acl.Creator()...))
	mustCreate(t, c, "/tls/node", secretData)
	list, _, err := c.ACL(t.Context(), "/tls/node")
	if err != nil || !slices.ContainsFunc(list, func(a acl.Entry) bool { return a.Scheme == "x509" }) {
		t.Errorf("ACL %v, %v: want it to name the client's certificate", list, err)
	}
	rec.check(t, secret, secretData)

	for _, tc := range []struct {
		name   string
		host   string
		config *tls.Config
		want   string
	}{
		{"another server name is verified", "other.test:2281", config, "zk.test"},
		{"an unknown authority is refused", "zk.test:2281", &tls.Config{Certificates: config.Certificates, MinVersion: tls.VersionTLS12}, "unknown authority"},
		{"no TLS at all", "zk.test:2281", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			opts := []framework.Option{lead, framework.WithConnectTimeout(patience / 4), framework.WithRetry(retry.Never())}
			if tc.config != nil {
				opts = append(opts, framework.WithTLS(tc.config))
			}
			_, _, err := newClient(t, tc.host, opts...).Get(within(t, patience), "/")
			wantErr(t, "get", err, framework.ErrNotConnected)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want it to say %q", err, tc.want)
			}
		})
	}
}

// nettyFlags completes the class path where Debian's package is used: its
// manifest names some of Netty's jars and lacks others.
func nettyFlags(t *testing.T) []string {
	t.Helper()
	if os.Getenv("ZOOKEEPER_HOME") != "" {
		return nil
	}
	jars := must.Get(filepath.Glob("/usr/share/java/netty-*.jar"))(t)
	jars = slices.DeleteFunc(jars, func(jar string) bool {
		return !slices.Contains([]string{"buffer", "codec", "common", "handler", "resolver", "transport"},
			strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jar), "netty-"), ".jar"))
	})
	return []string{"-Xbootclasspath/a:" + strings.Join(jars, ":")}
}

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	ca := &authority{cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "docent test CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	ca.key, ca.pem = ca.sign(t, ca.cert)
	return ca
}

// sign returns a new key and the certificate for it; the authority's own is
// signed with itself.
func (ca *authority) sign(t *testing.T, cert *x509.Certificate) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	signer := ca.key
	if signer == nil {
		signer = key
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, cert, ca.cert, &key.PublicKey, signer))(t)
	return key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// write writes a new key and its certificate to one file, and returns its name.
func (ca *authority) write(t *testing.T, file, name string) string {
	t.Helper()
	key, cert := ca.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der := must.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	content := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), cert...)
	must.OK(t, os.WriteFile(file, content, 0o600))
	return file
}
