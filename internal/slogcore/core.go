// Package slogcore lets a zap.Logger write to a slog.Handler, for applications
// that log by log/slog.
package slogcore

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"go.uber.org/zap/zapcore"
)

// New returns a core that gives log lines to handler. A line's context (see
// package zapctx) becomes the record's; the logger's name and a stack trace
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
