package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// A report is asked for at each of two instances while something happens to ZooKeeper.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens       func(s *zkserver.Server, session int64)
		first, second int
	}{
		"nothing":          {func(*zkserver.Server, int64) {}, http.StatusOK, http.StatusConflict},
		"ZooKeeper stops":  {func(s *zkserver.Server, _ int64) { s.Refuse(); s.Cut() }, http.StatusOK, http.StatusServiceUnavailable},
		"a session is cut": {func(s *zkserver.Server, session int64) { _ = s.Expire(session) }, http.StatusInternalServerError, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := zkserver.Run(t)
				var answers [2]chan int
				var sessions [2]int64
				for i := range answers {
					client := connect(t, server.Addr(), framework.WithDialer(server.Dial), framework.WithSessionTimeout(15*time.Second))
					sessions[i] = client.Session().ID
					answers[i] = make(chan int, 1)
					go func() { answers[i] <- post(t.Context(), newHandler(t.Context(), client)) }()
					synctest.Wait() // the first one has the lock
				}
				began := time.Now()
				<-time.After(time.Second)
				c.happens(server, sessions[0])
				if first, second := <-answers[0], <-answers[1]; first != c.first || second != c.second {
					t.Errorf("answered %d and %d, want %d and %d", first, second, c.first, c.second)
				}
				if took := time.Since(began); took > 6*time.Second {
					t.Errorf("answered after %v; the work takes 5 s", took)
				}
				server.Accept()
			})
		})
	}
}

func TestMain(m *testing.M) { zktest.Main(m) }

func TestOnARealServer(t *testing.T) {
	t.Parallel()
	client := connect(t, zktest.Shared(t).Addr())
	if got := post(t.Context(), newHandler(t.Context(), client)); got != http.StatusOK {
		t.Errorf("answered %d, want 200", got)
	}
}

// TestAllServersKilled kills ZooKeeper's process while a report is written.
func TestAllServersKilled(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	client := connect(t, server.Addr(), framework.WithSessionTimeout(15*time.Second))
	service := httptest.NewServer(newHandler(t.Context(), client))
	defer service.Close()
	killed := make(chan error, 1)
	time.AfterFunc(2*time.Second, func() { killed <- server.Kill() })
	answer, err := http.Post(service.URL+"/report", "", nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), "written") || err != nil {
		t.Errorf("answered %d %q, %v; want 200 and the report", answer.StatusCode, body, err)
	}
	if err := <-killed; err != nil {
		t.Error(err)
	}
}

// After a signal /readyz fails, while the requests that still come are served.
func TestDraining(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := zkserver.Run(t)
		client := connect(t, server.Addr(), framework.WithDialer(server.Dial))
		ctx, signal := context.WithCancel(t.Context())
		defer signal()
		service := newHandler(ctx, client)
		for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
			if got := get(t.Context(), service, "/readyz"); got != want {
				t.Errorf("/readyz answered %d, want %d", got, want)
			}
			if got := post(t.Context(), service); got != http.StatusOK {
				t.Errorf("/report answered %d, want 200", got)
			}
			signal()
		}
	})
}

// connect returns a client that has a session.
func connect(t *testing.T, addr string, opts ...framework.Option) *framework.Client {
	t.Helper()
	client, err := framework.NewClient(addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := client.AwaitConnected(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client
}

// The manifest asks for what the service answers.
func TestTheManifestAsksForWhatTheServiceAnswers(t *testing.T) {
	t.Parallel()
	manifest, err := os.ReadFile("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"-listen", ":8080"`, "containerPort: 8080",
		"readinessProbe:\n            httpGet: {path: /readyz, port: http}",
		"livenessProbe:\n            httpGet: {path: /livez, port: http}",
	} {
		if !strings.Contains(string(manifest), want) {
			t.Errorf("kubernetes.yaml has no %q", want)
		}
	}
}

// An outage costs readiness, and only a closed client liveness: else Kubernetes would restart all instances.
func TestProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := zkserver.Run(t)
		client := connect(t, server.Addr(), framework.WithDialer(server.Dial))
		service := newHandler(t.Context(), client)
		probe := func(when string, ready, alive int) {
			t.Helper()
			if gotReady, gotAlive := get(t.Context(), service, "/readyz"), get(t.Context(), service, "/livez"); gotReady != ready || gotAlive != alive {
				t.Errorf("%s: /readyz answered %d and /livez %d, want %d and %d", when, gotReady, gotAlive, ready, alive)
			}
		}
		probe("connected", http.StatusOK, http.StatusOK)
		server.Refuse()
		server.Cut()
		<-time.After(time.Minute)
		probe("without ZooKeeper", http.StatusServiceUnavailable, http.StatusOK)
		server.Accept()
		<-time.After(time.Minute)
		probe("connected again", http.StatusOK, http.StatusOK)
		_ = client.Close()
		probe("closed", http.StatusServiceUnavailable, http.StatusServiceUnavailable)
	})
}

func get(ctx context.Context, handler http.Handler, path string) int {
	return ask(ctx, handler, http.MethodGet, path)
}

func post(ctx context.Context, handler http.Handler) int {
	return ask(ctx, handler, http.MethodPost, "/report")
}

func ask(ctx context.Context, handler http.Handler, method, path string) int {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, method, path, nil))
	return answer.Code
}
