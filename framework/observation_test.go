package framework_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/listeners"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// inBubble runs a test in virtual time, in which retries are as many as the policy says.
func inBubble(t *testing.T, test func(t *testing.T, w *zkenv.Env)) {
	t.Helper()
	zkenv.ForEach(t, test, zkenv.Only("durations and retries are exact in virtual time alone", zkenv.Embedded))
}

func wantSpans(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("spans\n%swant\n%s", got, want)
	}
}

func TestRetriesAreInOneSpanThatCountsThem(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w *zkenv.Env) {
		tr, way := newTraces(), w.Route(t)
		c := way.Client(t, framework.WithTracerProvider(tr.provider))
		way.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore, Times: 2})
		ctx := tr.caller(t)
		must.Get2(c.Get(ctx, "/"))(t)
		wantSpans(t, tr.take(t, ctx, c), "getData (caller, unset) zookeeper.client.operation.retries=2 zookeeper.node.path=/\n")
	})
}

func TestSpan_reports_the_last_attempt(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w *zkenv.Env) {
		tr, way := newTraces(), w.Route(t)
		c := way.Client(t, framework.WithTracerProvider(tr.provider), framework.WithRetry(retry.Times(2, 0)))
		way.Rules().Add(fault.Rule{Op: fault.SetData, Action: fault.CutBefore, Times: fault.Forever})
		ctx := tr.caller(t)
		_, err := c.Set(ctx, "/", nil, framework.AnyVersion)
		wantErr(t, "set", err, framework.ErrUnknownOutcome)
		wantSpans(t, tr.take(t, ctx, c), "setData (caller, error: "+reason(t, err)+
			") error.type=connection_loss zookeeper.client.operation.retries=2 zookeeper.node.path=/\n")
	})
}

// reason returns the text of what an OpError wraps.
func reason(t testing.TB, err error) string {
	t.Helper()
	op, ok := err.(*framework.OpError) //nolint:errorlint // what operations return
	if !ok {
		t.Fatalf("error %v of type %T", err, err)
	}
	return op.Err.Error()
}

func TestASpanEndsWithItsContext(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w *zkenv.Env) {
		tr, way := newTraces(), w.Route(t)
		c := way.Client(t, framework.WithTracerProvider(tr.provider))
		for _, of := range []struct{ errorType, text string }{
			{"deadline_exceeded", "outcome unknown: context deadline exceeded"},
			{"canceled", "outcome unknown: context canceled"},
		} {
			held := way.Rules().Add(fault.Rule{Op: fault.Sync, Action: fault.HoldRequest})
			ctx, cancel := context.WithTimeout(tr.caller(t), time.Second)
			if of.errorType == "canceled" {
				time.AfterFunc(time.Millisecond, cancel)
			}
			err := c.Sync(ctx, "/")
			cancel()
			held.Release()
			if got := framework.ErrorType(err); got != of.errorType {
				t.Errorf("error %v of type %s, want %s", err, got, of.errorType)
			}
			wantSpans(t, tr.take(t, ctx, c), "sync (caller, error: "+of.text+") error.type="+of.errorType+" zookeeper.node.path=/\n")
		}
	})
}

func TestWhichOperationsHaveSpans(t *testing.T) {
	t.Parallel()
	const ofCaller, ofNobody = "sync (caller, unset) zookeeper.node.path=/\n", "sync (root, unset) zookeeper.node.path=/\n"
	for _, tc := range []struct {
		name                          string
		opts                          []framework.Option
		inTrace, unsampled, elsewhere string
	}{
		{"by default those within a sampled span", nil, ofCaller, "", ""},
		{"none", []framework.Option{framework.WithOperationSpans(false)}, "", "", ""},
		{"all that the provider samples", []framework.Option{framework.WithOperationSpans(true)}, ofCaller, "", ofNobody},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, w *zkenv.Env) {
				tr := newTraces()
				c := w.Client(t, append(tc.opts, framework.WithTracerProvider(tr.provider))...)
				sampled := tr.caller(t)
				unsampled := trace.ContextWithSpanContext(t.Context(), trace.SpanContextFromContext(sampled).WithTraceFlags(0))
				for _, of := range []struct {
					ctx  context.Context
					want string
				}{{sampled, tc.inTrace}, {unsampled, tc.unsampled}, {t.Context(), tc.elsewhere}} {
					must.OK(t, c.Sync(of.ctx, "/"))
					wantSpans(t, tr.take(t, of.ctx, c), of.want)
				}
			})
		})
	}
}

func TestAGuaranteedDeletionHasASpanOfItsOwn(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w *zkenv.Env) {
		tr := newTraces()
		c := w.Client(t, framework.WithTracerProvider(tr.provider), framework.WithOperationSpans(true))
		mustCreate(t, c, "/x", "")
		tr.spans.Reset()
		c.Discard("/x")
		w.Quiesce() // deletions are done in no fixed order
		c.Discard("/none")
		w.Quiesce()
		wantSpans(t, tr.take(t, t.Context(), c), "delete (root, unset) zookeeper.node.path=/x\n"+
			"delete (root, unset) db.response.status_code=-101 zookeeper.node.path=/none\n")
	})
}

func TestAnOperationOfAClosedClientHasASpan(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w *zkenv.Env) {
		tr := newTraces()
		c := w.Client(t, framework.WithTracerProvider(tr.provider))
		must.OK(t, c.Close())
		ctx := tr.caller(t)
		wantErr(t, "sync", c.Sync(ctx, "/"), framework.ErrClosed)
		wantSpans(t, tr.take(t, ctx, c), "sync (caller, error: client closed) error.type=client_closed server.address=none zookeeper.node.path=/\n")
	})
}

func TestErrorType(t *testing.T) {
	t.Parallel()
	inOp := func(err error) error { return &framework.OpError{Op: "get", Path: "/", Err: err} }
	for want, errs := range map[string][]error{
		"":                           {nil},
		"no_node":                    {framework.ErrNoNode, &framework.TxnError{Err: framework.ErrNoNode}},
		"node_exists":                {framework.ErrNodeExists, fmt.Errorf("%w, maybe (%w)", framework.ErrNodeExists, framework.ErrUnknownOutcome)},
		"bad_version":                {framework.ErrBadVersion},
		"not_empty":                  {framework.ErrNotEmpty},
		"no_children_for_ephemerals": {framework.ErrNoChildrenForEphemerals},
		"no_auth":                    {framework.ErrNoAuth},
		"auth_failed":                {framework.ErrAuthFailed},
		"invalid_acl":                {framework.ErrInvalidACL},
		"bad_arguments":              {framework.ErrBadArguments},
		"too_large":                  {framework.ErrTooLarge},
		"not_gzip":                   {framework.ErrNotGzip},
		"unsupported":                {framework.ErrUnsupported},
		"reconfig_disabled":          {framework.ErrReconfigDisabled},
		"reconfig_in_progress":       {framework.ErrReconfigInProgress},
		"no_quorum":                  {framework.ErrNoQuorum},
		"server_error":               {framework.ErrServer},
		"not_connected":              {framework.ErrNotConnected},
		"connection_loss":            {framework.ErrUnknownOutcome, &retry.ExhaustedError{Err: framework.ErrUnknownOutcome}},
		"session_ended":              {framework.ErrSessionEnded},
		"session_expired":            {framework.ErrSessionExpired},
		"session_deadline":           {framework.ErrSessionDeadline},
		"session_replaced":           {framework.ErrSessionReplaced},
		"client_closed":              {framework.ErrClosed},
		"invalid_path":               {framework.ErrInvalidPath, framework.ValidatePath("x")},
		"invalid_argument":           {retry.ErrInvalid, retry.Validate(retry.Times(-1, 0))},
		"panic":                      {&listeners.PanicError{Value: framework.ErrNoNode}},
		"canceled":                   {context.Canceled, fmt.Errorf("%w: %w", framework.ErrUnknownOutcome, context.Canceled)},
		"deadline_exceeded":          {fmt.Errorf("%w: %w", framework.ErrNotConnected, context.DeadlineExceeded)},
		"_OTHER":                     {errors.New("boom")},
	} {
		for _, err := range errs {
			if got := framework.ErrorType(err); got != want {
				t.Errorf("ErrorType(%v) = %q, want %q", err, got, want)
			}
			if err == nil {
				continue
			}
			op := inOp(err)
			if got := framework.ErrorType(op); got != want {
				t.Errorf("ErrorType(%v) = %q, want %q", op, got, want)
			}
			if got := semconv.ErrorType(op).Value.AsString(); got != want {
				t.Errorf("semconv.ErrorType(%v) = %q, want %q", op, got, want)
			}
		}
	}
}
