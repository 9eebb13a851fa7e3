package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// reportHandler answers with the report that makeReport returns. It makes one report at a time: a
// request that finds the lock held is answered with a conflict.
func reportHandler(m *lock.Mutex, makeReport func(ctx context.Context) (string, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var report string
		err := lock.Do(r.Context(), m, func(ctx context.Context, _ *lock.Lease) (err error) {
			report, err = makeReport(ctx)
			return err
		}, lock.WithoutWaiting())
		switch {
		case errors.Is(err, lock.ErrHeld):
			http.Error(w, "another request makes the report", http.StatusConflict)
		case errors.Is(err, framework.ErrNotConnected):
			http.Error(w, "no report: try later", http.StatusServiceUnavailable)
		case err != nil: // also a lost lock: docs/errors.md has all
			http.Error(w, "no report", http.StatusInternalServerError)
		default:
			_, _ = fmt.Fprintln(w, report)
		}
	})
}

// reportTime is how long a report takes, in virtual time.
const reportTime = time.Minute

// TestReportHandler calls a handler as net/http does: each request on a goroutine of its own.
func TestReportHandler(t *testing.T) {
	t.Run("one request at a time makes the report", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, _, handler := newTestHandler(t)
			first := serve(t.Context(), handler)
			synctest.Wait() // the first request has the lock, and makes the report
			if got := <-serve(t.Context(), handler); got != http.StatusConflict {
				t.Errorf("second request: status %d, want %d", got, http.StatusConflict)
			}
			if got := <-first; got != http.StatusOK {
				t.Errorf("first request: status %d, want %d", got, http.StatusOK)
			}
		})
	})
	t.Run("the report stops when the session expires", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server, client, handler := newTestHandler(t)
			status, began := serve(t.Context(), handler), time.Now()
			synctest.Wait()
			if err := server.Expire(client.Session().ID); err != nil {
				t.Fatal(err)
			}
			if got := <-status; got != http.StatusInternalServerError {
				t.Errorf("status %d, want %d", got, http.StatusInternalServerError)
			}
			if took := time.Since(began); took >= reportTime {
				t.Errorf("the handler returned after %v: the report went on without the lock", took)
			}
		})
	})
	t.Run("the lock is released when the user goes away", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, _, handler := newTestHandler(t)
			user, goAway := context.WithCancel(t.Context())
			status := serve(user, handler)
			synctest.Wait()
			goAway()
			if got := <-status; got != http.StatusInternalServerError {
				t.Errorf("status %d, want %d", got, http.StatusInternalServerError)
			}
			if got := <-serve(t.Context(), handler); got != http.StatusOK {
				t.Errorf("next request: status %d, want %d", got, http.StatusOK)
			}
		})
	})
}

// newTestHandler returns a server, a client of it, and a handler that uses the client.
func newTestHandler(t *testing.T) (*zkserver.Server, *framework.Client, http.Handler) {
	t.Helper()
	server := zkserver.Run(t)
	client, err := framework.NewClient(server.Addr(), framework.WithDialer(server.Dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	mutex, err := lock.NewMutex(client, "/report")
	if err != nil {
		t.Fatal(err)
	}
	return server, client, reportHandler(mutex, func(ctx context.Context) (string, error) {
		return "all is well", pause(ctx, reportTime)
	})
}

// serve has the handler answer a request on a goroutine of its own, and returns the status.
func serve(ctx context.Context, handler http.Handler) <-chan int {
	status := make(chan int, 1)
	go func() {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodPost, "/report", nil))
		status <- answer.Code
	}()
	return status
}
