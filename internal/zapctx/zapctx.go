// Package zapctx lets log lines say which trace they belong to.
package zapctx

import (
	"context"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Field returns a field that carries ctx and prints nothing: encoders skip it. A
// zapcore.Core that sends logs to OpenTelemetry finds ctx in it, and with ctx
// the span that the line belongs to.
func Field(ctx context.Context) zap.Field {
	return zap.Field{Key: "context", Type: zapcore.SkipType, Interface: ctx}
}
