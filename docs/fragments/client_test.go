package fragments_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/lock/httplock"
	"github.com/docent-go/docent/testing/zkserver"
)

// listen returns a connect string of an embedded server, for pages that make a client as users do.
func listen(t *testing.T) string {
	t.Helper()
	return must.Get(zkserver.Run(t).Listen("127.0.0.1:0"))(t)
}

func TestObservabilityPage(t *testing.T) {
	t.Parallel()
	must.OK(t, observed(t.Context(), listen(t), tracenoop.NewTracerProvider(), metricnoop.NewMeterProvider(), zap.NewNop()))
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

// Requests for two orders don't wait for each other.
func TestServicePage_one_lock_per_order(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		s.hold(t, "/locks/orders/7")
		var j job
		handler := must.Get(orders(s.client, j.work))(t)
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
