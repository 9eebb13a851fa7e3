package framework_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
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

// The client tries again, ever slower. Virtual time stops while a goroutine spins, as that of the tracking once did.
func TestRefusedCredential_is_state_and_error(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var rec record
		var seen trail
		proxy := newProxy(t, srv)
		opts := append(twoCredentials(), framework.WithAuth("nosuchscheme", []byte(secret)), framework.WithLogger(rec.logger()),
			framework.WithRetry(retry.Forever(time.Millisecond)), framework.WithDialer(proxy.Dial), framework.WithSessionTimeout(span),
			framework.WithStateListener(seen.add), framework.WithEnsembleTracking())
		c := newClient(t, srv.Addr(), opts...)
		wantErr(t, "AwaitConnected", c.AwaitConnected(t.Context()), framework.ErrAuthFailed)
		err := last(c.Get(t.Context(), "/"))
		wantErr(t, "get", err, framework.ErrAuthFailed)
		wantText(t, err, `credential refused: that of the scheme "nosuchscheme"`)
		sleep(time.Minute)
		dials := sentAt(proxy, fault.Connect)
		// The pause doubles up to two seconds, of which a part is drawn.
		wantBetween(t, "attempts in a minute", len(dials), 30, 300)
		longest := time.Duration(0)
		for i := range dials[1:] {
			longest = max(longest, dials[i+1].Sub(dials[i]))
		}
		if longest <= span/16 || longest > 2*time.Second {
			t.Errorf("the longest pause is %v", longest)
		}
		wantList(t, "states, which end with AuthFailed", seen.states(), []framework.State{connecting, framework.AuthFailed})
		wantErr(t, "the cause", seen.last(framework.AuthFailed).Cause, framework.ErrAuthFailed)
		rec.add(err, `"connected"`)
		rec.check(t, secret)
	})
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
	var addresses []net.IP
	if ip := net.ParseIP(name); ip != nil {
		addresses = []net.IP{ip}
	}
	key, cert := ca.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: addresses,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der := must.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	content := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), cert...)
	must.OK(t, os.WriteFile(file, content, 0o600))
	return file
}

// twoCredentials are accepted.
func twoCredentials() []framework.Option {
	return []framework.Option{
		framework.WithAuth("digest", []byte(user+":"+secret)),
		framework.WithAuth("digest", []byte("bob:"+secret)),
	}
}

func TestCredentials_are_accepted_before_requests(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c, proxy := proxied(t, srv, append(twoCredentials(), framework.WithStateListener(seen.add))...)
		wantEqual(t, "credentials sent", proxy.Count(fault.SetAuth), 2)
		mustCreate(t, c, "/mine", "", framework.WithACL(acl.Creator()...))
		if acl, _, err := c.ACL(t.Context(), "/mine"); err != nil || len(acl) != 2 {
			t.Errorf("created under %v, %v, want both credentials", acl, err)
		}
		sleep(time.Second) // a connection that lasted, after which none is made to wait
		proxy.ResetRequests()
		late := proxy.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.DelayReply, Delay: time.Second, Skip: 1})
		proxy.Cut()
		start := time.Now()
		await(t, late.Hit(), "the second credential")
		synctest.Wait()
		if c.State() == connected {
			t.Error("connected while a credential is not answered")
		}
		must.Get2(c.Get(t.Context(), "/mine"))(t)
		wantEqual(t, "time that it took", time.Since(start), time.Second)
		wantEqual(t, "credentials sent at the reconnection", proxy.Count(fault.SetAuth), 2)
		seen.await(t, connecting, connected, suspended, connected)
		// As Curator's Framework.testCreateACLWithReset: a session that follows another has its credentials.
		must.OK(t, srv.Expire(c.Session().ID))
		must.Get2(c.Get(t.Context(), "/mine"))(t)
		sleep(time.Second)
		seen.await(t, connecting, connected, suspended, connected, suspended, lost, connected)
	})
}

func TestCredential_without_an_answer(t *testing.T) {
	t.Parallel()
	const limit = 500 * time.Millisecond
	const longest = 200 * time.Millisecond // the pause before a second attempt
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		held := srv.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.HoldReply})
		start := time.Now()
		var seen trail
		c, proxy := proxied(t, srv, append(twoCredentials(), framework.WithConnectTimeout(limit), framework.WithStateListener(seen.add))...)
		if took := time.Since(start); held.Hits() != 1 || took < limit || took > limit+longest {
			t.Errorf("connected after %v, want one more attempt after %v", took, limit)
		}
		sleep(time.Second)
		id := c.Session().ID
		srv.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.HoldReply})
		proxy.Cut()
		start = time.Now()
		if _, _, err := c.Children(t.Context(), "/"); err != nil || c.Session().ID != id {
			t.Errorf("session %#x, want %#x: %v", c.Session().ID, id, err)
		}
		wantBetween(t, "the time that it took", time.Since(start), limit, limit+longest)
		seen.await(t, connecting, connected, suspended, connected)
	})
}

const renewed = "n3w-Pa55"

// onlyFor is the ACL of a user of the scheme digest with one password.
func onlyFor(user, password string) framework.CreateOption {
	return framework.WithACL(acl.Digest(user, password)...)
}

// digest returns a credential of the user alice.
func digest(password string) []byte { return []byte(user + ":" + password) }

// reads returns which of a client's znodes it can read.
func reads(t *testing.T, c *framework.Client, paths ...string) (readable []string) {
	t.Helper()
	for _, path := range paths {
		_, _, err := c.Get(t.Context(), path)
		if err == nil {
			readable = append(readable, path)
		} else {
			wantErr(t, "get "+path, err, framework.ErrNoAuth)
		}
	}
	return readable
}

// wantReads fails the test unless c can read exactly the paths wanted of /old, /new and /bob.
func wantReads(t *testing.T, when string, c *framework.Client, want ...string) {
	t.Helper()
	if got := reads(t, c, "/old", "/new", "/bob"); !slices.Equal(got, want) {
		t.Errorf("%s: it can read %q, want %q", when, got, want)
	}
}

// protect creates the znodes of [wantReads] by c.
func protect(t *testing.T, c *framework.Client) {
	t.Helper()
	mustCreate(t, c, "/old", secretData, onlyFor(user, secret))
	mustCreate(t, c, "/new", secretData, onlyFor(user, renewed))
	mustCreate(t, c, "/bob", secretData, onlyFor("bob", secret))
}

// TestAddAuth has a client of alice's with a hold add credentials. What it has then it presents to each later connection.
func TestAddAuth(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		add       func(t *testing.T, srv *zkserver.Server, proxy *zkproxy.Proxy, c *framework.Client)
		reads     []string // what the client can read by the next connections
		presented int      // credentials, to each of them
		failed    int      // changes to AuthFailed
	}{
		"that replaces the credential of the same user": {func(t *testing.T, _ *zkserver.Server, _ *zkproxy.Proxy, c *framework.Client) {
			must.OK(t, c.AddAuth(t.Context(), "digest", []byte("bob:"+secret)))
			wantReads(t, "before", c, "/old", "/bob")
			must.OK(t, must.Get(c.Namespace("some"))(t).AddAuth(t.Context(), "digest", digest(renewed)))
			wantReads(t, "on the connection of AddAuth", c, "/old", "/new", "/bob")
		}, []string{"/new", "/bob"}, 2, 0},
		"that is refused, twice": {func(t *testing.T, _ *zkserver.Server, _ *zkproxy.Proxy, c *framework.Client) {
			for range 2 {
				wantRefused(t, c.AddAuth(within(t, patience), "nosuchscheme", []byte(renewed)))
				sleep(time.Second)
				wantReads(t, "after a refusal", c, "/old")
			}
		}, []string{"/old"}, 1, 0},
		"that the next connection refuses": {func(t *testing.T, srv *zkserver.Server, _ *zkproxy.Proxy, c *framework.Client) {
			disconnect(srv)
			added := background(func() error { return c.AddAuth(t.Context(), "nosuchscheme", []byte(renewed)) })
			sleep(time.Second)
			srv.Accept()
			wantRefused(t, <-added)
		}, []string{"/old"}, 1, 1},
		"that it has from the beginning, and that a server refuses once": {func(t *testing.T, _ *zkserver.Server, proxy *zkproxy.Proxy, c *framework.Client) {
			refusing := proxy.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.Refuse, Code: fault.AuthFailed})
			wantErr(t, "AddAuth", c.AddAuth(t.Context(), "digest", digest(secret)), framework.ErrAuthFailed)
			wantEqual(t, "refusals", refusing.Hits(), 1)
		}, []string{"/old"}, 1, 0},
		"without a connection, for which it waits": {func(t *testing.T, srv *zkserver.Server, _ *zkproxy.Proxy, c *framework.Client) {
			disconnect(srv)
			sleep(time.Second)
			err := c.AddAuth(within(t, 2*time.Second), "digest", []byte("bob:"+secret))
			wantErr(t, "AddAuth", err, context.DeadlineExceeded, framework.ErrNotConnected) // it is added, though
			added := background(func() error { return c.AddAuth(t.Context(), "digest", digest(renewed)) })
			sleep(time.Second)
			srv.Accept()
			must.OK(t, <-added)
		}, []string{"/new", "/bob"}, 2, 0},
		"whose request is lost": {func(t *testing.T, srv *zkserver.Server, _ *zkproxy.Proxy, c *framework.Client) {
			srv.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.CutBefore})
			must.OK(t, c.AddAuth(t.Context(), "digest", digest(renewed)))
		}, []string{"/new"}, 1, 0},
		"whose answer is lost": {func(t *testing.T, srv *zkserver.Server, _ *zkproxy.Proxy, c *framework.Client) {
			srv.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.DropReply})
			must.OK(t, c.AddAuth(t.Context(), "digest", digest(renewed)))
		}, []string{"/new"}, 1, 0},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var seen trail
			c, proxy := proxied(t, srv, framework.WithAuth("digest", digest(secret)), framework.WithStateListener(seen.add))
			protect(t, c)
			id, h := c.Session().ID, mustHold(t, c)
			tc.add(t, srv, proxy, c)
			for range 2 {
				sleep(time.Second)
				proxy.ResetRequests()
				proxy.Cut()
				wantReads(t, "on the next connection", c, tc.reads...)
				wantEqual(t, "credentials presented", proxy.Count(fault.SetAuth), tc.presented)
			}
			wantErr(t, "the hold", h.Err(), nil)
			wantEqual(t, "session", c.Session().ID, id)
			wantEqual(t, "changes to AuthFailed", countOf(seen.states(), framework.AuthFailed), tc.failed)
		})
	}
}

// wantRefused fails the test unless AddAuth was refused for the scheme, and the error does not show the credential.
func wantRefused(t *testing.T, err error) {
	t.Helper()
	wantErr(t, "AddAuth", err, framework.ErrAuthFailed)
	if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, renewed) || !strings.Contains(text, "nosuchscheme") {
		t.Errorf("%s: want the scheme, and not the credential", text)
	}
}

// Several calls of one user are refused together: the client has its first credential again.
func TestAddAuth_of_several_that_are_refused_has_no_effect(t *testing.T) {
	t.Parallel()
	for range 20 { // in a random order
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			c, _ := proxied(t, srv, framework.WithAuth("digest", digest(secret)))
			protect(t, c)
			disconnect(srv)
			var calls []<-chan error
			for _, wrong := range []string{"wrong", "wronger", "wrongest"} {
				calls = append(calls, background(func() error { return c.AddAuth(t.Context(), "digest", digest(wrong)) }))
				sleep(time.Second)
			}
			srv.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.Refuse, Code: fault.AuthFailed})
			srv.Accept()
			for _, call := range calls {
				wantErr(t, "AddAuth", <-call, framework.ErrAuthFailed)
			}
			sleep(time.Minute)
			wantReads(t, "afterwards", c, "/old")
		})
	}
}

func TestAddAuth_brings_a_refused_client_back(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		refusing := srv.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.Refuse, Code: fault.AuthFailed, Times: fault.Forever})
		c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithAuth("digest", digest(secret)))
		wantErr(t, "AwaitConnected", c.AwaitConnected(t.Context()), framework.ErrAuthFailed)
		sleep(time.Minute) // pauses take seconds by now
		start := time.Now()
		wantErr(t, "AddAuth", c.AddAuth(t.Context(), "digest", digest(renewed)), framework.ErrAuthFailed)
		wantWithin(t, start, 0)
		refusing.Remove()
		must.OK(t, c.AddAuth(t.Context(), "digest", digest("4nother")))
		if took := time.Since(start); took > 0 || c.State() != connected {
			t.Errorf("%v after %v", c.State(), took)
		}
		protect(t, c)
		mustCreate(t, c, "/another", "", onlyFor(user, "4nother"))
		wantReads(t, "with the last", c)
		check(t, last(c.Get(t.Context(), "/another")))
	})
}

// The credential is good, and another one is not.
func TestAddAuth_reports_a_refused_client(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithAuth("nosuchscheme", digest(secret)))
		wantErr(t, "AwaitConnected", c.AwaitConnected(t.Context()), framework.ErrAuthFailed)
		wantErr(t, "AddAuth", c.AddAuth(t.Context(), "digest", digest(renewed)), framework.ErrAuthFailed)
		wantEqual(t, "state", c.State(), framework.AuthFailed)
	})
}

func TestAddAuth_at_servers_that_require_a_credential(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t, zktest.WithSetting("enforce.auth.enabled", "true"), zktest.WithSetting("enforce.auth.schemes", "digest"))
	c := newClient(t, server.Addr())
	zktest.Eventually(t, patience, "the first request is refused", func() bool {
		_, _, _ = c.Get(within(t, patience), "/")
		return c.State() == framework.AuthFailed
	})
	must.OK(t, c.AddAuth(within(t, patience), "digest", digest(secret)))
	mustCreate(t, c, "/mine", "", framework.WithACL(acl.Creator()...))
}

func TestAddAuth_refuses_bad_arguments_at_once(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, proxy := proxied(t, srv)
		wantErr(t, "a credential that is too long", c.AddAuth(t.Context(), "digest", digest(strings.Repeat("x", framework.DefaultMaxRequest))), framework.ErrTooLarge)
		wantText(t, last(c.AddAuth(t.Context(), "", digest(secret))), "scheme must not be empty")
		for _, bad := range []string{"", secret, user + ":", ":" + secret} {
			const want = "credential of digest: must be user:password, with a password"
			err := last(c.AddAuth(t.Context(), "digest", []byte(bad)))
			wantText(t, err, want)
			_, fault := framework.NewClient("host", framework.WithAuth("digest", []byte(bad)))
			wantText(t, fault, want)
			if text := fmt.Sprint(err, fault); strings.Contains(text, secret) {
				t.Errorf("the credential is shown: %s", text)
			}
		}
		wantEqual(t, "credentials presented", proxy.Count(fault.SetAuth), 0)
		must.OK(t, c.Close())
		wantErr(t, "a closed client", c.AddAuth(t.Context(), "digest", digest(secret)), framework.ErrClosed)
	})
}

// In other schemes than digest the user cannot be told: one token replaces another.
func TestAddAuth_of_a_token_replaces_the_earlier_one(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, proxy := proxied(t, srv, framework.WithAuth("ip", []byte("first")), framework.WithAuth("digest", digest(secret)))
		for _, token := range []string{"second", "third"} {
			must.OK(t, c.AddAuth(t.Context(), "ip", []byte(token)))
		}
		proxy.ResetRequests()
		srv.Cut()
		sleep(time.Second)
		wantEqual(t, "credentials presented", proxy.Count(fault.SetAuth), 2)
	})
}

// A connection that has come while a server looked at the credential lacks it, so AddAuth presents it there.
func TestAddAuth_presents_again_where_a_connection_has_come(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, proxy := proxied(t, srv)
		held := proxy.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.HoldReply})
		adding := background(func() error { return c.AddAuth(t.Context(), "digest", digest(secret)) })
		await(t, held.Hit(), "the reply")
		framework.PresentElsewhere(c)
		held.Release()
		must.OK(t, <-adding)
		wantEqual(t, "credentials presented", proxy.Count(fault.SetAuth), 2)
	})
}
