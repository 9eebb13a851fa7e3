package slogcore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"testing/slogtest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/slogcore"
)

// A bridge is a slog.Handler that writes to a zapcore.Core, so that the rules
// for handlers can be asked of what is behind the core.
type bridge struct{ core zapcore.Core }

func (b bridge) Enabled(context.Context, slog.Level) bool { return true }

func (b bridge) Handle(ctx context.Context, r slog.Record) error {
	fields := []zap.Field{slogcore.Context(ctx)}
	r.Attrs(func(a slog.Attr) bool {
		fields = append(fields, fieldsOf(a)...)
		return true
	})
	return b.core.Write(zapcore.Entry{Time: r.Time, Message: r.Message, Level: zapcore.Level(r.Level / 4)}, fields)
}

func (b bridge) WithAttrs(attrs []slog.Attr) slog.Handler {
	var fields []zap.Field
	for _, a := range attrs {
		fields = append(fields, fieldsOf(a)...)
	}
	return bridge{b.core.With(fields)}
}

func (b bridge) WithGroup(name string) slog.Handler {
	return bridge{b.core.With([]zap.Field{zap.Namespace(name)})}
}

func fieldsOf(a slog.Attr) []zap.Field {
	value := a.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		if a.Key == "" {
			return nil
		}
		return []zap.Field{zap.Any(a.Key, value.Any())}
	}
	var inner []zap.Field
	for _, member := range value.Group() {
		inner = append(inner, fieldsOf(member)...)
	}
	if a.Key == "" || len(inner) == 0 {
		return inner
	}
	return []zap.Field{zap.Dict(a.Key, inner...)}
}

func TestCore_passes_the_handler_test(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	handler := bridge{slogcore.New(slog.NewJSONHandler(&out, nil))}
	err := slogtest.TestHandler(handler, func() []map[string]any { return lines(t, &out) })
	if err != nil {
		t.Error(err)
	}
}

func lines(t *testing.T, out *bytes.Buffer) (all []map[string]any) {
	t.Helper()
	for line := range bytes.Lines(out.Bytes()) {
		var one map[string]any
		must.OK(t, json.Unmarshal(line, &one))
		all = append(all, one)
	}
	return all
}

// kept is a handler that keeps the records that it gets.
type kept struct {
	slog.Handler
	least   slog.Level
	records []slog.Record
	ctx     context.Context
}

func (k *kept) Enabled(_ context.Context, level slog.Level) bool { return level >= k.least }

func (k *kept) Handle(ctx context.Context, r slog.Record) error {
	k.records, k.ctx = append(k.records, r), ctx
	return nil
}

func (k *kept) attrs() map[string]slog.Value {
	all := make(map[string]slog.Value)
	k.records[len(k.records)-1].Attrs(func(a slog.Attr) bool {
		all[a.Key] = a.Value
		return true
	})
	return all
}

func TestLine_keeps_types_and_context(t *testing.T) {
	t.Parallel()
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "here")
	k := new(kept)
	log := zap.New(slogcore.New(k), zap.AddCaller(), zap.AddStacktrace(zap.ErrorLevel)).Named("zk").Named("lock")
	log.Error("boom", zap.String("s", "v"), zap.Int("n", 7), zap.Duration("d", time.Second),
		zap.Error(errors.New("bad")), zap.Namespace("in"), zap.Bool("b", true), slogcore.Context(ctx))

	attrs := k.attrs()
	for key, want := range map[string]slog.Value{
		"logger": slog.StringValue("zk.lock"), "s": slog.StringValue("v"), "n": slog.Int64Value(7),
		"d": slog.DurationValue(time.Second), "error": slog.StringValue("bad"),
		"in": slog.GroupValue(slog.Bool("b", true)),
	} {
		if got := attrs[key]; !got.Equal(want) {
			t.Errorf("attribute %s = %v (%v), want %v (%v)", key, got, got.Kind(), want, want.Kind())
		}
	}
	if attrs["stacktrace"].String() == "" {
		t.Error("the stack trace is missing")
	}
	if n := len(attrs); n != 7 {
		t.Errorf("%d attributes %v, want 7: the context is none", n, attrs)
	}
	if r := k.records[0]; r.PC == 0 || r.Message != "boom" || r.Level != slog.LevelError || r.Time.IsZero() {
		t.Errorf("record %+v: caller, message, level or time is missing", r)
	}
	if k.ctx.Value(key{}) != "here" {
		t.Error("the handler got another context than the line's")
	}
	log.With(slogcore.Context(ctx)).Error("again")
	if k.ctx.Value(key{}) != "here" {
		t.Error("the handler got another context than the logger's")
	}
}

func TestTheHandlersLevelDecides(t *testing.T) {
	t.Parallel()
	k := &kept{least: slog.LevelWarn}
	log := zap.New(slogcore.New(k))
	log.Debug("no")
	log.Info("no")
	log.Warn("yes")
	log.Error("yes")
	var got []slog.Level
	for _, r := range k.records {
		got = append(got, r.Level)
	}
	if len(got) != 2 || got[0] != slog.LevelWarn || got[1] != slog.LevelError {
		t.Errorf("levels %v, want WARN and ERROR", got)
	}
	must.OK(t, log.Sync())
}
