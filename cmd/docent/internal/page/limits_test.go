package page_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/page"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// A client that does not send the body that it has announced gets its reply, whatever it asks for.
func TestServer_cuts_a_slow_body(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *page.Config) {
		c.Read = 50 * time.Millisecond
		c.Revoke = func(context.Context, string) error { return nil }
	})
	host := strings.TrimPrefix(s.base, "http://")
	for name, c := range map[string]struct{ line, host, headers, want string }{
		"a revocation":                {"POST /revoke", host, "Authorization: Bearer " + token + "\r\nContent-Type: application/json\r\n", "400"},
		"a revocation without token":  {"POST /revoke", host, "Content-Type: application/json\r\n", "401"},
		"a frame":                     {"GET /", host, "", "200"},
		"another host":                {"POST /revoke", "evil.example", "", "421"},
		"what is not there":           {"POST /nothing", host, "", "404"},
		"a method that is not served": {"PUT /metrics", host, "", "405"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := s.dial(t)
			fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: 100\r\n\r\n{", c.line, c.host, c.headers)
			reply, err := io.ReadAll(conn) // the server closes a connection whose body it has not read
			if err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 "+c.want) {
				t.Errorf("%v: %.100q, want %s", err, reply, c.want)
			}
		})
	}
}

// The time limit of the body does not end a revocation that takes longer.
func TestServer_revokes_for_longer_than_the_body_may_take(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	s := serve(t, func(c *page.Config) {
		c.Read = 50 * time.Millisecond
		c.Revoke = func(ctx context.Context, _ string) error {
			close(begun)
			select {
			case <-time.After(4 * c.Read):
			case <-ctx.Done():
			}
			return ctx.Err()
		}
	})
	s.published(mutex("/locks/a", "alice"))
	reply := s.ask(t, "POST", "/revoke", `{"znode":"/locks/a/alice","fence":"100"}`, "Content-Type: application/json")
	<-begun
	if reply.StatusCode != http.StatusOK {
		t.Errorf("status %d: %s", reply.StatusCode, text(t, reply))
	}
}

// A client that asks and does not read is cut. It needs no token.
func TestServer_cuts_who_does_not_read(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *page.Config) { c.Write = 100 * time.Millisecond })
	conn := s.dial(t)
	must.OK(t, conn.SetReadBuffer(4<<10))
	request := "GET /app.js HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.base, "http://") + "\r\n\r\n"
	zktest.Eventually(t, 20*time.Second, "the connection's end", func() bool {
		must.OK(t, conn.SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
		_, err := io.WriteString(conn, strings.Repeat(request, 100))
		return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	})
}

// A stream of HTTP/2 on which nothing happens for longer than a message may take stays open.
func TestServer_keeps_an_idle_stream_of_HTTP2(t *testing.T) {
	t.Parallel()
	var handler http.Handler
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	handler = page.NewServer(page.Config{
		Source: make(script), Token: token, Hosts: []string{strings.TrimPrefix(server.URL, "https://")},
		Write: 50 * time.Millisecond, Beat: 200 * time.Millisecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // before server.Close, which waits for the stream
	r := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/events", nil))(t)
	r.Header.Set("Authorization", "Bearer "+token)
	reply, err := server.Client().Do(r)
	if err != nil || reply.ProtoMajor != 2 {
		t.Fatalf("%v, %v", reply, err)
	}
	defer func() { _ = reply.Body.Close() }()
	lines := bufio.NewReader(reply.Body)
	for _, want := range []string{"snapshot", "beat", "beat"} {
		if got := readMessage(t, lines); !strings.Contains(got, "event: "+want) {
			t.Errorf("%q, want %s", got, want)
		}
	}
}

// The page answers to the hosts by which browsers name its address, and to no others.
func TestServe_answers_to_its_address(t *testing.T) {
	t.Parallel()
	p := startProgram(t, "--connect", ensemble(t), "--listen", "127.0.0.3:0", "/locks")
	address := strings.TrimPrefix(p.base, "http://")
	_, port, err := net.SplitHostPort(address)
	if err != nil || !strings.HasPrefix(address, "127.0.0.3:") {
		t.Fatalf("%v: %q", err, p.base)
	}
	for host, want := range map[string]int{
		address: 200, "localhost:" + port: 200, "[::1]:" + port: 200, "127.0.0.1:" + port: 200,
		"LOCALHOST:" + port: 421, "localhost.:" + port: 421, "localhost": 421, "127.0.0.3": 421,
		"127.0.0.4:" + port: 421, "[::ffff:127.0.0.3]:" + port: 421, "127.0.0.3:" + port + "0": 421, "evil.127.0.0.3:" + port: 421,
	} {
		if got := p.ask(t, "GET", "/metrics", "", "Host: "+host).StatusCode; got != want {
			t.Errorf("host %s: status %d, want %d", host, got, want)
		}
	}
}

// Requests that a client writes by itself: what they name is exact, and no route is reached past the guard.
func TestServer_refuses_odd_requests(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *page.Config) {
		c.Revoke = func(context.Context, string) error { t.Error("revoked"); return nil }
	})
	s.published(mutex("/locks/a", "alice"))
	host := strings.TrimPrefix(s.base, "http://")
	bearer := "Authorization: Bearer " + token + "\r\n"
	for name, c := range map[string]struct{ request, want string }{
		"two hosts":                   {"GET / HTTP/1.1\r\nHost: " + host + "\r\nHost: evil.example\r\n\r\n", "400"},
		"no host":                     {"GET / HTTP/1.1\r\n\r\n", "400"},
		"no host, HTTP/1.0":           {"GET / HTTP/1.0\r\n\r\n", "421"},
		"another host in the target":  {"GET http://evil.example/metrics HTTP/1.1\r\nHost: " + host + "\r\n" + bearer + "\r\n", "421"},
		"length and chunks":           {"POST /revoke HTTP/1.1\r\nHost: " + host + "\r\n" + bearer + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "4"},
		"two lengths":                 {"POST /revoke HTTP/1.1\r\nHost: " + host + "\r\n" + bearer + "Content-Length: 4\r\nContent-Length: 5\r\n\r\n", "400"},
		"two tokens, the wrong first": {"GET /metrics HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer x\r\n" + bearer + "\r\n", "401"},
		"a token in another case":     {"GET /metrics HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + strings.ToUpper(token) + "\r\n\r\n", "401"},
		"OPTIONS":                     {"OPTIONS /revoke HTTP/1.1\r\nHost: " + host + "\r\nAccess-Control-Request-Method: POST\r\n\r\n", "405"},
		"OPTIONS of all":              {"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421"},
		"CONNECT":                     {"CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80\r\n\r\n", "421"},
		"TRACE":                       {"TRACE /metrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n", "405"},
		"HEAD without a token":        {"HEAD /trace.json HTTP/1.1\r\nHost: " + host + "\r\n\r\n", "401"},
		"a doubled slash":             {"GET //metrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n", "307"},
		"an escaped route":            {"GET /%6detrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n", "401"},
		"a very long path":            {"GET /" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n", "431"},
		"very long headers":           {"GET / HTTP/1.1\r\nHost: " + host + "\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", "431"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := s.dial(t)
			_, _ = io.WriteString(conn, c.request) // the server may close before the end
			line, err := bufio.NewReader(conn).ReadString('\n')
			_, status, _ := strings.Cut(line, " ")
			if err != nil || !strings.HasPrefix(status, c.want) {
				t.Errorf("%v: %q, want %s", err, line, c.want)
			}
		})
	}
}

// Names of a megabyte, which any client may write, are cut before they are sent.
func TestServer_cuts_long_names(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	long := strings.Repeat("é", 512<<10)
	for _, part := range []string{"owner", "host"} {
		locks := []inspect.Lock{mutex("/locks/a", "alice", "bob"), mutex("/locks/b", "bob", "alice")}
		for i := range locks {
			for k := range locks[i].Contenders {
				if m := locks[i].Contenders[k].Meta; part == "owner" {
					m.Owner = long
				} else {
					m.Host = long
				}
			}
		}
		s.published(locks...)
		message := readMessage(t, bufio.NewReader(s.ask(t, "GET", "/events?open=/locks/a", "").Body))
		if !strings.Contains(message, "é…") || len(message) > 256<<10 {
			t.Errorf("%s: a message of %d bytes: %.300s", part, len(message), message)
		}
		if trace := text(t, s.ask(t, "GET", "/trace.json", "")); len(trace) > 64<<10 {
			t.Errorf("%s: a trace of %d bytes", part, len(trace))
		}
	}
}
