package page_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/form"
	"github.com/docent-go/docent/cmd/docent/internal/page"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// ask sends a request. Headers are "Name: value"; Host and Authorization are those of the page itself,
// unless they are given.
func (s *stand) ask(t testing.TB, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, s.base+path, strings.NewReader(body)))(t)
	r.Header.Set("Authorization", "Bearer "+s.token)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	reply := must.Get(http.DefaultClient.Do(r))(t)
	t.Cleanup(func() { _ = reply.Body.Close() }) // read as far as the test wants
	return reply
}

// dial connects to the page, for 20 s at most.
func (s *stand) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	conn := must.Get(net.Dial("tcp", strings.TrimPrefix(s.base, "http://")))(t).(*net.TCPConn)
	t.Cleanup(func() { _ = conn.Close() })
	must.OK(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return conn
}

func text(t testing.TB, reply *http.Response) string {
	t.Helper()
	data := must.Get(io.ReadAll(reply.Body))(t)
	return string(data)
}

func TestServer_refuses(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for name, c := range map[string]struct {
		method, path string
		headers      []string
		want         int
	}{
		"a rebound host":                {"GET", "/", []string{"Host: evil.example"}, 421},
		"a rebound host for the stream": {"GET", "/events", []string{"Host: evil.example"}, 421},
		"our host with another port":    {"GET", "/metrics", []string{"Host: 127.0.0.1:1"}, 421},
		"another site":                  {"GET", "/", []string{"Sec-Fetch-Site: cross-site"}, 403},
		"no token":                      {"GET", "/events", []string{"Authorization: "}, 401},
		"a wrong token":                 {"GET", "/metrics", []string{"Authorization: Bearer wrong"}, 401},
		"the token as a query":          {"GET", "/trace.json?token=" + token, []string{"Authorization: "}, 401},
		"the token as basic password":   {"GET", "/metrics", []string{"Authorization: Basic " + token}, 401},
		"POST to the frame":             {"POST", "/", nil, 405},
		"POST to the stream":            {"POST", "/events", nil, 405},
		"DELETE":                        {"DELETE", "/metrics", nil, 405},
		"revocation, which is off":      {"POST", "/revoke", nil, 404},
		"a file outside of the assets":  {"GET", "/../server.go", nil, 404},
		"a faulty query":                {"GET", "/events?sort=size", nil, 400},
		"the frame, asked for rightly":  {"GET", "/", []string{"Authorization: "}, 200},
		"the head of the stream":        {"HEAD", "/events", nil, 200},
	} {
		t.Run(name, func(t *testing.T) {
			reply := s.ask(t, c.method, c.path, "", c.headers...)
			if reply.StatusCode != c.want {
				t.Errorf("status %d, want %d", reply.StatusCode, c.want)
			}
			for header, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
				"Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "",
				"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
					"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
			} {
				if got := reply.Header.Get(header); got != want {
					t.Errorf("%s: %q, want %q", header, got, want)
				}
			}
		})
	}
}

// Without the token there are the frame, its files and the schema, each with its type.
func TestServer_has_files(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for path, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/style.css": "text/css; charset=utf-8", "/app.js": "text/javascript; charset=utf-8",
		"/favicon.ico": "image/x-icon", "/schema.json": "application/schema+json",
	} {
		reply := s.ask(t, "GET", path, "", "Authorization: ")
		got := text(t, reply)
		if reply.StatusCode != http.StatusOK || reply.Header.Get("Content-Type") != want || got == "" || path == "/schema.json" && got != string(form.Schema) {
			t.Errorf("%s: status %d, type %q, %d bytes", path, reply.StatusCode, reply.Header.Get("Content-Type"), len(got))
		}
	}
}

// The stream begins with a snapshot, and sends then what has changed. No data of znodes is sent.
func TestServer_streams_changes(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.show(mutex("/locks/a", "alice"), mutex("/locks/b", "bob"))
	lines := bufio.NewReader(s.ask(t, "GET", "/events?sort=lock", "").Body)
	first := readMessage(t, lines)
	for _, want := range []string{"event: snapshot", `"n":1,`, `"path":"/locks/a"`, `"path":"/locks/b"`, `"owner":"alice"`, `"state":"live"`} {
		if !strings.Contains(first, want) {
			t.Errorf("the snapshot lacks %s: %s", want, first)
		}
	}
	s.show(mutex("/locks/a", "alice"), mutex("/locks/b", "bob", "carol"))
	second := readMessage(t, lines)
	if !strings.Contains(second, "event: delta") || !strings.Contains(second, `"n":2,`) || !strings.Contains(second, `"waiting":1`) {
		t.Errorf("not the change: %s", second)
	}
	if strings.Contains(second, `"path":"/locks/a","kind"`) || strings.Contains(second, `"order":[`) {
		t.Errorf("the message has rows that have not changed: %s", second)
	}
	if strings.Contains(first+second, "c2VjcmV0") || strings.Contains(first+second, "secret") {
		t.Error("the stream has data of znodes")
	}
}

func readMessage(t testing.TB, lines *bufio.Reader) string {
	t.Helper()
	var message strings.Builder
	for {
		line := must.Get(lines.ReadString('\n'))(t)
		if line == "\n" {
			return message.String()
		}
		message.WriteString(line)
	}
}

func TestServer_bounds_its_streams(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 64 {
		r := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/events", nil))(t)
		r.Header.Set("Authorization", "Bearer "+token)
		reply, err := http.DefaultClient.Do(r)
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Fatalf("stream %d: %v", i, err)
		}
		defer func() { _ = reply.Body.Close() }()
	}
	if got := s.ask(t, "GET", "/events", "").StatusCode; got != http.StatusServiceUnavailable {
		t.Errorf("stream 65: status %d, want 503", got)
	}
	cancel()
	zktest.Eventually(t, 20*time.Second, "a stream to be free again", func() bool {
		reply := s.ask(t, "HEAD", "/metrics", "")
		metrics := text(t, s.ask(t, "GET", "/metrics", ""))
		return reply.StatusCode == http.StatusOK && strings.Contains(metrics, "docent_page_streams 0\n")
	})
}

// Without all of token, origin and type nothing is asked of a holder, and each attempt is counted.
func TestServer_revokes_only_when_the_page_asks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var revoked []string
	s := serve(t, func(c *page.Config) {
		c.Revoke = func(_ context.Context, znode string) error {
			mu.Lock()
			defer mu.Unlock()
			revoked = append(revoked, znode)
			return nil
		}
	})
	unfair := mutex("/locks/u", "bob")
	unfair.Kind = inspect.Exclusive
	s.show(mutex("/locks/a", "alice"), unfair)
	right := fmt.Sprintf(`{"znode":%q,"fence":"100"}`, "/locks/a/alice")
	for name, c := range map[string]struct {
		method, body string
		headers      []string
		want         int
	}{
		"no token":             {"POST", right, []string{"Authorization: ", "Content-Type: application/json"}, 401},
		"a foreign origin":     {"POST", right, []string{"Origin: https://evil.example", "Content-Type: application/json"}, 403},
		"another port's page":  {"POST", right, []string{"Sec-Fetch-Site: same-site", "Content-Type: application/json"}, 403},
		"a form":               {"POST", right, []string{"Content-Type: text/plain"}, 415},
		"GET":                  {"GET", right, []string{"Content-Type: application/json"}, 405},
		"a znode of no lock":   {"POST", `{"znode":"/config","fence":"1"}`, []string{"Content-Type: application/json"}, 404},
		"an earlier contender": {"POST", `{"znode":"/locks/a/alice","fence":"99"}`, []string{"Content-Type: application/json"}, 404},
		"no JSON":              {"POST", `{`, []string{"Content-Type: application/json"}, 400},
		"a large body":         {"POST", `{"znode":"` + strings.Repeat("x", 9<<10) + `"}`, []string{"Content-Type: application/json"}, 400},
		// It has no revocation. A request would replace its metadata for nothing.
		"an unfair mutex": {"POST", `{"znode":"/locks/u/bob","fence":"100"}`, []string{"Content-Type: application/json"}, 409},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.ask(t, c.method, "/revoke", c.body, c.headers...).StatusCode; got != c.want {
				t.Errorf("status %d, want %d", got, c.want)
			}
		})
	}
	if len(revoked) > 0 {
		t.Errorf("revoked %q", revoked)
	}
	reply := s.ask(t, "POST", "/revoke", right, "Content-Type: application/json", "Origin: "+s.base, "Sec-Fetch-Site: same-origin")
	if reply.StatusCode != http.StatusOK || len(revoked) != 1 || revoked[0] != "/locks/a/alice" {
		t.Errorf("status %d, revoked %q", reply.StatusCode, revoked)
	}
}

func TestServer_trace(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.show(mutex("/locks/a", "alice", "bob"))
	s.published(mutex("/locks/a", "bob"))
	trace := text(t, s.ask(t, "GET", "/trace.json", ""))
	if strings.Count(trace, `"ph":"X"`) != 2 || !strings.Contains(trace, `"name":"/locks/a"`) {
		t.Errorf("not the two holds: %s", trace)
	}
}
