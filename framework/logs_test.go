package framework_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestLog_of_state_changes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w *zkenv.Env) {
		for _, tc := range []struct {
			lost  zapcore.Level // the level of Lost
			holds any           // the field of the holds
		}{{zap.WarnLevel, nil}, {zap.ErrorLevel, int64(1)}} {
			core, logs := observer.New(zap.InfoLevel)
			var states trail
			way := w.Route(t)
			c := way.Client(t, framework.WithLogger(zap.New(core)), framework.WithStateListener(states.add))
			if tc.holds != nil {
				mustHold(t, c)
			}
			ended := c.Session().ID
			way.Expire(t)
			states.await(t, framework.Connecting, framework.Connected, framework.Suspended, framework.Lost, framework.Connected)
			must.OK(t, c.Close())
			lines := logs.FilterMessage("connection state changed").All()
			want := []struct {
				state string
				level zapcore.Level
			}{
				{"connected", zap.InfoLevel},
				{"suspended", zap.WarnLevel},
				{"lost", tc.lost},
				{"connected", zap.InfoLevel},
				{"closed", zap.InfoLevel},
			}
			if len(lines) != len(want) || logs.Len() != len(want) {
				t.Fatalf("lines %v, want %d", logs.All(), len(want))
			}
			for i, line := range lines {
				if got := line.ContextMap()[zktel.AttrConnectionState]; got != want[i].state || line.Level != want[i].level {
					t.Errorf("line %d tells of %v at level %v, want %v", i, got, line.Level, want[i])
				}
			}
			lost := lines[2].ContextMap()
			if lost["zookeeper.session.holds"] != tc.holds || lost[zktel.AttrErrorType] != "session_expired" {
				t.Errorf("the line about the loss has the fields %v, want holds %v", lost, tc.holds)
			}
			if id := lines[0].ContextMap()[zktel.AttrSessionID]; lost[zktel.AttrSessionID] != id || ended == c.Session().ID {
				t.Errorf("the session that ended is %v, the first was %v", lost[zktel.AttrSessionID], id)
			}
		}
	})
}

func TestARetryIsLoggedWithTheSpanOfItsOperation(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w *zkenv.Env) {
		core, logs := observer.New(zap.DebugLevel)
		tr, way := newTraces(), w.Route(t)
		c := way.Client(t, framework.WithLogger(zap.New(core)), framework.WithTracerProvider(tr.provider))
		way.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore})
		must.Get2(c.Get(tr.caller(t), "/"))(t)
		lines := logs.FilterMessage("attempt failed, there will be another").All()
		if len(lines) != 1 {
			t.Fatalf("lines %v, want one", lines)
		}
		want := tr.spans.GetSpans()[0].SpanContext.SpanID()
		for _, field := range lines[0].Context {
			if ctx, ok := field.Interface.(context.Context); ok && field.Type == zapcore.SkipType {
				if got := trace.SpanContextFromContext(ctx).SpanID(); got != want {
					t.Errorf("the line is of span %v, want %v", got, want)
				}
				return
			}
		}
		t.Errorf("the line has the fields %v: none carries a context", lines[0].Context)
	})
}

// spanHandler notes which spans its records belong to.
type spanHandler struct {
	slog.Handler
	mu    sync.Mutex // guards following
	spans map[string]trace.SpanID
}

func (h *spanHandler) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spans[r.Message] = trace.SpanContextFromContext(ctx).SpanID()
	return h.Handler.Handle(ctx, r)
}

func TestWithSlogLogsWithTheContextOfTheCall(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w *zkenv.Env) {
		var out record
		handler := &spanHandler{
			Handler: slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}),
			spans:   make(map[string]trace.SpanID),
		}
		tr, way := newTraces(), w.Route(t)
		c := way.Client(t, framework.WithSlog(slog.New(handler)), framework.WithTracerProvider(tr.provider))
		way.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore})
		must.Get2(c.Get(tr.caller(t), "/"))(t)
		handler.mu.Lock()
		defer handler.mu.Unlock()
		if got, want := handler.spans["attempt failed, there will be another"], tr.spans.GetSpans()[0].SpanContext.SpanID(); got != want {
			t.Errorf("the line is of span %v, want %v", got, want)
		}
		for _, part := range []string{`"level":"INFO","msg":"connection state changed","logger":"zk"`, `"zookeeper.client.connection.state":"connected"`, `"error.type":"connection_loss"`} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("the log does not have %s:\n%s", part, out.String())
			}
		}
	})
}

func TestWithSlogRefusesNil(t *testing.T) {
	t.Parallel()
	_, err := framework.NewClient("localhost", framework.WithSlog(nil))
	if err == nil || !strings.Contains(err.Error(), "logger: must not be nil") {
		t.Errorf("error %v", err)
	}
}

// TestOutage_is_retried_with_pauses has a call retry through an outage that ends
// the session. The policy pauses for a millisecond only.
func TestOutage_is_retried_with_pauses(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const outage = 10 * time.Minute
		var dials atomic.Int64
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return srv.Dial(ctx, network, addr)
		}
		var rec record
		c := connect(t, srv.Addr(), framework.WithDialer(dial), framework.WithLogger(rec.logger()),
			framework.WithRetry(retry.Forever(time.Millisecond)))
		srv.Refuse()
		srv.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), outage)
		defer cancel()
		_, _, err := c.Children(ctx, "/")
		wantErr(t, "children", err, context.DeadlineExceeded)
		if n, most := dials.Load(), int64(2*outage/time.Second); n < 10 || n > most {
			t.Errorf("%d attempts to connect within %v, want 10 to %d", n, outage, most)
		}
		log := rec.String() // DEBUG has a line for each attempt
		if n := strings.Count(log, "\n") - strings.Count(log, `"L":"DEBUG"`); n < 2 || n > 50 {
			t.Errorf("%d log lines above DEBUG within %v, want 2 to 50", n, outage)
		}
		srv.Accept()
		if _, _, err := c.Children(t.Context(), "/"); err != nil {
			t.Errorf("after the outage: %v", err)
		}
	})
}
