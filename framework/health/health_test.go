package health_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/health"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := zkserver.Run(t, zkenv.DrawVersion(t)...)
		client := must.Get(framework.NewClient(server.Addr(), framework.WithDialer(server.Dial)))(t)
		must.OK(t, client.AwaitConnected(t.Context()))
		ready, live := health.Ready(client, time.Second), health.Live(client)
		want := func(when string, readyCode int, readyText string, liveCode int) {
			t.Helper()
			for _, probe := range []struct {
				name    string
				handler http.Handler
				code    int
			}{{"ready", ready, readyCode}, {"live", live, liveCode}} {
				answer := httptest.NewRecorder()
				probe.handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
				if answer.Code != probe.code {
					t.Errorf("%s: %s %d, want %d", when, probe.name, answer.Code, probe.code)
				}
				if got := answer.Body.String(); probe.name == "ready" && got != readyText {
					t.Errorf("%s: answered %q, want %q", when, got, readyText)
				}
			}
		}
		want("connected", 200, "zookeeper: Connected\n", 200)
		server.Freeze()
		want("frozen", 503, "zookeeper: Connected: deadline_exceeded\n", 200)
		server.Thaw()
		server.Refuse()
		server.Cut()
		synctest.Wait()
		want("cut", 503, "zookeeper: Suspended: not_connected\n", 200)
		server.Accept()
		must.OK(t, client.AwaitConnected(t.Context()))
		want("connected again", 200, "zookeeper: Connected\n", 200)
		must.OK(t, client.Close())
		want("closed", 503, "zookeeper: Closed: client_closed\n", 503)
	})
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	client := must.Get(framework.NewClient("zookeeper.test"))(t)
	defer client.Close()
	for name, fn := range map[string]func(){
		"Ready without a client": func() { health.Ready(nil, time.Second) },
		"Ready without a limit":  func() { health.Ready(client, 0) },
		"Live without a client":  func() { health.Live(nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			fn()
		}()
	}
}
