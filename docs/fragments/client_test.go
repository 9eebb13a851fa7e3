package fragments_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/lock/httplock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zkserver"
)

// listen returns a connect string of an embedded server, for pages that make a client as users do.
func listen(t *testing.T) string {
	t.Helper()
	addr, err := zkserver.Run(t).Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func TestRetryPage(t *testing.T) {
	t.Parallel()
	var j job
	succeed(t, func() error {
		return retries(t.Context(), listen(t), func(ctx context.Context) error {
			if err := j.work(ctx); err != nil || j.times > 2 {
				return err
			}
			return errors.New("not yet")
		})
	})
	j.want(t, 3)
}

func retries(ctx context.Context, servers string, work func(context.Context) error) error {
	policy := retry.BoundedExponential(50*time.Millisecond, 2*time.Second, 5)
	client, err := framework.NewClient(servers, framework.WithRetry(policy))
	if err != nil {
		return err
	}
	defer client.Close()
	err = retry.Do(ctx, policy, func(ctx context.Context) error {
		return work(ctx)
	})
	return errors.Join(err, client.AwaitConnected(ctx))
}

func TestObservabilityPage(t *testing.T) {
	t.Parallel()
	succeed(t, func() error {
		return observed(t.Context(), listen(t), tracenoop.NewTracerProvider(), metricnoop.NewMeterProvider(), zap.NewNop())
	})
}

func observed(ctx context.Context, servers string, tracers trace.TracerProvider, meters metric.MeterProvider, logger *zap.Logger) error {
	client, err := framework.NewClient(servers,
		framework.WithTracerProvider(tracers), // default: the global provider
		framework.WithMeterProvider(meters),   // default: the global provider
		framework.WithLogger(logger))          // default: none; WithSlog(*slog.Logger) for log/slog
	if err != nil {
		return err
	}
	defer client.Close()
	return client.AwaitConnected(ctx)
}

func TestOperatingPage_a_stuck_lock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		s.hold(t, "/locks/report")
		mutex, err := lock.NewMutex(s.client, "/locks/report")
		if err != nil {
			t.Fatal(err)
		}
		succeed(t, func() error { return printQueue(t.Context(), mutex) })
	})
}

func printQueue(ctx context.Context, mutex *lock.Mutex) error {
	found, err := mutex.Participants(ctx)
	if err != nil {
		return err
	}
	for _, p := range found {
		fmt.Println(p.Path, p.Holder, "session", fmt.Sprintf("%#x", p.Session))
		if p.Metadata != nil {
			fmt.Println("  ", p.Metadata.Host, p.Metadata.PID, p.Metadata.Owner, p.Metadata.Since)
		}
	}
	return nil
}

func TestOperatingPage_probes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		mux := probes(s.client)
		synctest.Wait() // the client is connected
		want := func(path string, status int) {
			t.Helper()
			answer := httptest.NewRecorder()
			mux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
			if answer.Code != status {
				t.Errorf("%s: status %d, want %d", path, answer.Code, status)
			}
		}
		want("/readyz", http.StatusOK)
		s.server.Freeze()
		want("/readyz", http.StatusServiceUnavailable)
		want("/livez", http.StatusOK)
		s.server.Thaw()
		if err := s.client.Close(); err != nil {
			t.Fatal(err)
		}
		want("/livez", http.StatusServiceUnavailable)
	})
}

func probes(client *framework.Client) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := client.Ready(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/livez", func(w http.ResponseWriter, r *http.Request) {
		if client.State() == framework.Closed {
			http.Error(w, "closed", http.StatusServiceUnavailable)
		}
	})
	return mux
}

// Requests for two orders don't wait for each other.
func TestServicePage_one_lock_per_order(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		s.hold(t, "/locks/orders/7")
		var j job
		handler, err := orders(s.client, j.work)
		if err != nil {
			t.Fatal(err)
		}
		for id, status := range map[string]int{"8": http.StatusOK, "7": http.StatusConflict, "../x": http.StatusInternalServerError} {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
			request.SetPathValue("id", id)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			if answer.Code != status {
				t.Errorf("order %s: status %d, want %d", id, answer.Code, status)
			}
		}
		j.want(t, 1)
	})
}

func orders(client *framework.Client, work func(context.Context) error) (http.Handler, error) {
	orders, err := httplock.New(func(r *http.Request) (lock.Locker, error) {
		id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
		if err != nil {
			return nil, err
		}
		return lock.NewMutex(client, fmt.Sprintf("/locks/orders/%d", id), recipes.WithName("orders"))
	}, func(w http.ResponseWriter, r *http.Request, l *lock.Lease) error {
		return work(r.Context())
	})
	return orders, err
}
