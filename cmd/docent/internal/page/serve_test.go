package page_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/page"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// write writes a file that its owner alone may read, and returns its path.
func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.OK(t, os.WriteFile(path, data, 0o600))
	return path
}

// certificate returns the files of a certificate for example.com and of its key, and its pool.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pool = x509.NewCertPool()
	pool.AddCert(server.Certificate())
	private := must.Get(x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey))(t)
	return write(t, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
		write(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), pool
}

// ensemble returns the address of an embedded server.
func ensemble(t *testing.T) string {
	t.Helper()
	return must.Get(zkserver.Run(t, zkenv.DrawVersion(t)...).Listen("127.0.0.1:0"))(t)
}

// With TLS, an operator's token and a further host, the page answers to that host, and prints no token.
func TestServe_with_TLS(t *testing.T) {
	t.Parallel()
	const secret = "a-token-of-the-operator"
	const host = "example.com"
	cert, key, pool := certificate(t)
	p := startProgram(t, "--connect", ensemble(t), "--tls-cert", cert, "--tls-key", key,
		"--token-file", write(t, "token", []byte(secret+"\n")), "--allow-host", host, "/locks")
	if want := "https://" + host + "/"; p.url != want {
		t.Errorf("the URL is %q, want %q", p.url, want)
	}
	if strings.Contains(p.out.String()+p.errs.String(), secret) {
		t.Error("the operator's token is printed")
	}
	var listening string
	zktest.Eventually(t, 20*time.Second, "the address", func() bool {
		_, after, found := strings.Cut(p.errs.String(), " listens at ")
		listening, _, _ = strings.Cut(after, "\n")
		return found && strings.Contains(after, "\n")
	})
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, listening)
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true,
	}}
	t.Cleanup(client.CloseIdleConnections)
	for name, c := range map[string]struct {
		host, token string
		want        int
	}{
		"the allowed host": {host, secret, 200},
		"another host":     {"evil.example", secret, 421},
		"no token":         {host, "", 401},
	} {
		r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/metrics", nil))(t)
		r.Host = c.host
		r.Header.Set("Authorization", "Bearer "+c.token)
		reply := must.Get(client.Do(r))(t)
		_ = reply.Body.Close()
		if reply.StatusCode != c.want || reply.TLS == nil || reply.TLS.Version < tls.VersionTLS12 {
			t.Errorf("%s: status %d, want %d", name, reply.StatusCode, c.want)
		}
	}
}

// An address that is not loopback needs TLS and a token file. Other faults of the flags are usage errors, too.
func TestServe_refuses(t *testing.T) {
	t.Parallel()
	good := write(t, "token", []byte("a-token-of-the-operator"))
	open := write(t, "open", []byte("a-token-of-the-operator"))
	must.OK(t, os.Chmod(open, 0o644))
	cert, key, _ := certificate(t)
	addr := ensemble(t)
	for name, args := range map[string][]string{
		"all addresses":             {"--listen", "0.0.0.0:0"},
		"all addresses of IPv6":     {"--listen", "[::]:0"},
		"no address":                {"--listen", ":0"},
		"a name":                    {"--listen", "locks.example:0"},
		"a token without TLS":       {"--listen", "0.0.0.0:0", "--token-file", good},
		"TLS without a token":       {"--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key},
		"a certificate without key": {"--listen", "127.0.0.1:0", "--tls-cert", cert},
		"a host for all":            {"--listen", "127.0.0.1:0", "--allow-host", "*"},
		"a token that others read":  {"--listen", "127.0.0.1:0", "--token-file", open},
		"a short token":             {"--listen", "127.0.0.1:0", "--token-file", write(t, "short", []byte("short"))},
		"a token of two words":      {"--listen", "127.0.0.1:0", "--token-file", write(t, "words", []byte("correct horse battery staple"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs apptest.Buffer
			app := &cli.App{In: strings.NewReader(""), Out: &out, Err: &errs}
			code := app.Main(t.Context(), append([]string{"--connect", addr, "serve"}, args...), page.New)
			if code != cli.CodeUsage || out.String() != "" {
				t.Errorf("exit code %d, output %q, %s", code, out.String(), errs.String())
			}
		})
	}
}

// The page's button asks, and the holder's function is called. The log has who asked for what, and no token.
func TestServe_revokes_from_the_page(t *testing.T) {
	addr := ensemble(t)
	c := must.Get(framework.NewClient(addr))(t)
	t.Cleanup(func() { _ = c.Close() }) // the server ends with the test
	asked := make(chan struct{}, 9)
	m := must.Get(lock.NewMutex(c, "/locks/a", recipes.WithRevocation(func(*lock.Lease) { asked <- struct{}{} })))(t)
	held := must.Get(m.Lock(t.Context()))(t)
	p := startProgram(t, "--connect", addr, "--allow-revoke", "/locks")
	tb := openTab(t)
	tb.do(chromedp.Navigate(p.url))
	tb.awaitText("#rows tbody", "/locks/a")
	tb.do(chromedp.Click("#rows .path"))
	tb.await("document.querySelector('#contenders .ask button')")
	tb.do(chromedp.Click("#contenders .ask button"))
	tb.await("document.querySelector('#ask').open && document.activeElement.value === 'cancel'")
	if len(asked) > 0 {
		t.Error("the holder was asked before anybody agreed")
	}
	tb.do(chromedp.Click("#ask button.danger"))
	select {
	case <-asked:
	case <-time.After(20 * time.Second):
		t.Fatal("the holder was not asked")
	}
	tb.awaitText("#contenders", "asked to release")
	log := p.errs.String()
	if !strings.Contains(log, "revocation asked for on the page") || !strings.Contains(log, "znode="+held.Node()) || !strings.Contains(log, "status=200") {
		t.Errorf("the log lacks the revocation: %s", log)
	}
	if strings.Contains(log, p.token) {
		t.Error("the log has the token")
	}
	tb.check(p.base)
	must.OK(t, held.Release(t.Context()))
}

// A tab that does not read ends after the time that a message may take. It delays no other tab.
func TestServer_cuts_a_slow_reader(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *page.Config) { c.Write = 300 * time.Millisecond })
	host := strings.TrimPrefix(s.base, "http://")
	conn := s.dial(t)
	must.OK(t, conn.SetReadBuffer(4<<10))
	fmt.Fprintf(conn, "GET /events?open=/locks/a HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", host, token)
	other := bufio.NewReader(s.ask(t, "GET", "/events", "").Body)
	readMessage(t, other)
	streams := func(n int) bool {
		return strings.Contains(text(t, s.ask(t, "GET", "/metrics", "")), fmt.Sprintf("docent_page_streams %d\n", n))
	}
	zktest.Eventually(t, 20*time.Second, "two streams", func() bool { return streams(2) })
	long := strings.Repeat("x", 1000)
	for i := 0; !streams(1); i++ {
		if i == 500 {
			t.Fatal("the stream that nobody reads is still open")
		}
		owner := fmt.Sprintf("owner-%d-", i)
		var all []string
		for k := range 200 {
			all = append(all, owner+long+fmt.Sprint(k))
		}
		s.script <- current(time.Now(), mutex("/locks/a", all...))
		for !strings.Contains(readMessage(t, other), owner) {
		}
	}
}
