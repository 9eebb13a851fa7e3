package lock_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/locktel"
	"github.com/docent-go/docent/testing/zkenv"
)

// lockLogs returns the lines of the logger of locks.
func lockLogs(s *service) []observer.LoggedEntry {
	return slices.DeleteFunc(s.logs.All(), func(e observer.LoggedEntry) bool { return !strings.HasSuffix(e.LoggerName, "lock") })
}

// spanOf returns the span that a line belongs to, by the context that it carries.
func spanOf(e observer.LoggedEntry) trace.SpanContext {
	for _, field := range e.Context {
		if ctx, ok := field.Interface.(context.Context); ok {
			return trace.SpanContextFromContext(ctx)
		}
	}
	return trace.SpanContext{}
}

// TestLogs holds the lines of a lock's moments against what they have to be.
func TestLogs(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		a, b := serviceIn(t, env, "a"), serviceIn(t, env, "b")
		kind := observedKinds()[0]
		queued(t, env, kind, a, b)
		lost(t, env, kind, a, b)
		type line struct {
			level  zapcore.Level
			text   string
			fields []string // in addition to those that all have
			span   string   // that it belongs to
		}
		want := []line{
			{zapcore.DebugLevel, "queued", []string{locktel.AttrQueuePosition}, "lock.acquire"},
			{zapcore.DebugLevel, "blocked", []string{locktel.AttrBlockedBy}, "lock.acquire"},
			{zapcore.DebugLevel, "acquired", []string{"duration", locktel.AttrContended, locktel.AttrFencingToken}, "lock.acquire"},
			{zapcore.DebugLevel, "released", []string{"duration"}, "lock.hold"},
			{zapcore.DebugLevel, "acquired", []string{"duration", locktel.AttrContended, locktel.AttrFencingToken, locktel.AttrName}, "lock.acquire orders-mutex"},
			{zapcore.WarnLevel, "lost", []string{"duration", "error", locktel.AttrLossReason, locktel.AttrName}, "lock.hold"},
		}
		names := make(map[trace.SpanID]string)
		for _, s := range a.spans.GetSpans() {
			names[s.SpanContext.SpanID()] = s.Name
		}
		var got []line
		for _, e := range lockLogs(a) {
			fields := e.ContextMap()
			if fields[locktel.AttrType] != "mutex" || fields[locktel.AttrPath] != "/locks/observed" {
				t.Errorf("%s: fields %v, want type and path", e.Message, fields)
			}
			delete(fields, locktel.AttrType)
			delete(fields, locktel.AttrPath)
			got = append(got, line{e.Level, e.Message, slices.Sorted(maps.Keys(fields)), names[spanOf(e).SpanID()]})
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("lines:\n%v\nwant:\n%v", got, want)
		}
	}, zkenv.Only("the lines are the same in all environments", zkenv.Embedded))
}

// TestNoSecrets runs everything with a digest credential and node data, and looks for them in all
// that leaves the process by telemetry.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	const user, password, data = "operator", "s3cr3t-passw0rd", "s3cr3t-data"
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		for _, k := range observedKinds() {
			secretive := func(name string) *service {
				return newService(name, func(opts ...framework.Option) *framework.Client {
					return env.Client(t, append(opts, framework.WithAuth("digest", []byte(user+":"+password)), framework.WithOperationSpans(true),
						framework.WithNamespace("secrets-"+k.name))...)
				})
			}
			a, b := secretive("a"), secretive("b")
			withData := k
			withData.newLocker = func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
				return k.newLocker(t, c, append(opts, recipes.WithData([]byte(data)))...)
			}
			for _, m := range scenarios() {
				if m.only == nil || m.only(k) {
					m.happen(t, env, withData, a, b)
				}
			}
			for _, s := range []*service{a, b} {
				told := everythingToldBy(t, s)
				if !strings.Contains(told, "/locks/observed") {
					t.Errorf("%s tells nothing of its locks", k.name)
				}
				for _, secret := range []string{password, data, base64.StdEncoding.EncodeToString([]byte(data))} {
					if i := strings.Index(told, secret); i >= 0 {
						t.Errorf("%s tells %q: …%s…", k.name, secret, told[max(0, i-200):i+len(secret)])
					}
				}
			}
		}
	}, zkenv.Only("what is told is the same in all environments", zkenv.Embedded))
}

// everythingToldBy returns all spans, metrics and log lines of a service as text.
func everythingToldBy(t testing.TB, s *service) string {
	t.Helper()
	var out bytes.Buffer
	for _, span := range s.spans.GetSpans() {
		fmt.Fprintf(&out, "%s %v %v %v %v\n", span.Name, span.Attributes, span.Status, span.Links, span.Events)
	}
	var metrics metricdata.ResourceMetrics
	must.OK(t, s.reader.Collect(t.Context(), &metrics))
	measured := must.Get(json.Marshal(metrics))(t)
	out.Write(measured)
	for _, e := range s.logs.All() {
		fields := must.Get(json.Marshal(e.ContextMap()))(t)
		fmt.Fprintf(&out, "%s %s %s\n", e.LoggerName, e.Message, fields)
	}
	return out.String()
}
