package main

import (
	"context"
	"net/http"
	"net/http/httptest"
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
					client, err := framework.NewClient(server.Addr(), framework.WithDialer(server.Dial))
					if err != nil {
						t.Fatal(err)
					}
					defer client.Close()
					if err := client.AwaitConnected(t.Context()); err != nil {
						t.Fatal(err)
					}
					sessions[i] = client.Session().ID
					answers[i] = make(chan int, 1)
					go func() { answers[i] <- post(t.Context(), newHandler(client)) }()
					synctest.Wait() // the first one has the lock
				}
				<-time.After(time.Second)
				c.happens(server, sessions[0])
				if first, second := <-answers[0], <-answers[1]; first != c.first || second != c.second {
					t.Errorf("answered %d and %d, want %d and %d", first, second, c.first, c.second)
				}
				server.Accept()
			})
		})
	}
}

func TestMain(m *testing.M) { zktest.Main(m) }

func TestOnARealServer(t *testing.T) {
	t.Parallel()
	client, err := framework.NewClient(zktest.Shared(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if got := post(t.Context(), newHandler(client)); got != http.StatusOK {
		t.Errorf("answered %d, want 200", got)
	}
}

func post(ctx context.Context, handler http.Handler) int {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodPost, "/report", nil))
	return answer.Code
}
