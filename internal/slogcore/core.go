// Package slogcore lets a zap.Logger write to a slog.Handler, for applications
// that log by log/slog.
package slogcore

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// New returns a core that gives log lines to handler. A line's context (see
// [Context]) becomes the record's; the logger's name and a stack trace
// become attributes.
func New(handler slog.Handler) zapcore.Core { return &core{handler: handler} }

// Keys of the attributes that zap has besides the fields.
const (
	loggerKey = "logger"
	stackKey  = "stacktrace"
)

type core struct {
	handler slog.Handler
	ctx     context.Context // that With was given as a field, nil for none
}

// Enabled reports whether the handler takes lines of the level.
func (c *core) Enabled(level zapcore.Level) bool {
	return c.handler.Enabled(c.context(nil), slogLevel(level))
}

// With returns a core whose lines have the fields, too.
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	with := &core{handler: c.handler, ctx: cmp.Or(contextIn(fields), c.ctx)}
	for len(fields) > 0 {
		attrs, group, rest := untilGroup(fields)
		if len(attrs) > 0 {
			with.handler = with.handler.WithAttrs(attrs)
		}
		if group != "" {
			with.handler = with.handler.WithGroup(group)
		}
		fields = rest
	}
	return with
}

// Check adds the core to the line if the handler takes it.
func (c *core) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write gives the line to the handler.
func (c *core) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	record := slog.NewRecord(entry.Time, slogLevel(entry.Level), entry.Message, entry.Caller.PC)
	if entry.LoggerName != "" {
		record.AddAttrs(slog.String(loggerKey, entry.LoggerName))
	}
	record.AddAttrs(attrsOf(fields)...)
	if entry.Stack != "" {
		record.AddAttrs(slog.String(stackKey, entry.Stack))
	}
	return c.handler.Handle(c.context(fields), record)
}

// Sync does nothing: a slog.Handler keeps nothing back that could be told to go.
func (c *core) Sync() error { return nil }

// context returns what the line was written with.
func (c *core) context(fields []zapcore.Field) context.Context {
	if ctx := cmp.Or(contextIn(fields), c.ctx); ctx != nil {
		return ctx
	}
	return context.Background() //nolint:forbidigo // a line that belongs to no call
}

// contextIn returns the last context among the fields, nil if there is none.
func contextIn(fields []zapcore.Field) context.Context {
	for _, f := range slices.Backward(fields) {
		if ctx, ok := f.Interface.(context.Context); ok && f.Type == zapcore.SkipType {
			return ctx
		}
	}
	return nil
}

// slogLevel returns the level at the same distance from Info: slog leaves room
// for three levels between any two of zap's.
func slogLevel(level zapcore.Level) slog.Level {
	return slog.Level(level) * (slog.LevelError - slog.LevelWarn)
}

// Context returns a field that carries ctx and prints nothing: encoders skip it. A
// zapcore.Core that sends logs to OpenTelemetry finds ctx in it, and with ctx
// the span that the line belongs to.
func Context(ctx context.Context) zap.Field {
	return zap.Field{Key: "context", Type: zapcore.SkipType, Interface: ctx}
}

// attrsOf returns the fields as attributes. Fields behind a namespace are a group.
func attrsOf(fields []zapcore.Field) []slog.Attr {
	attrs, group, rest := untilGroup(fields)
	if group == "" {
		return attrs
	}
	return append(attrs, slog.Attr{Key: group, Value: slog.GroupValue(attrsOf(rest)...)})
}

// untilGroup returns the fields up to the first namespace, its name if there is
// one, and what is in it.
func untilGroup(fields []zapcore.Field) (attrs []slog.Attr, group string, rest []zapcore.Field) {
	for i, f := range fields {
		if f.Type == zapcore.NamespaceType {
			return attrs, f.Key, fields[i+1:]
		}
		attrs = append(attrs, attrsOfOne(f)...)
	}
	return attrs, "", nil
}

// attrsOfOne returns one attribute for most fields, none for one that is
// skipped, and several for one that is inlined.
func attrsOfOne(f zapcore.Field) []slog.Attr {
	encoded := zapcore.NewMapObjectEncoder()
	f.AddTo(encoded)
	return attrsOfMap(encoded.Fields)
}

func attrsOfMap(fields map[string]any) []slog.Attr {
	attrs := make([]slog.Attr, 0, len(fields))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		attr := slog.Any(key, fields[key])
		if inner, ok := fields[key].(map[string]any); ok {
			attr.Value = slog.GroupValue(attrsOfMap(inner)...)
		}
		attrs = append(attrs, attr)
	}
	return attrs
}
