package slogcore

import (
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap/zapcore"
)

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
