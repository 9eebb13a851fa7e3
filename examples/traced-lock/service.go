package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
)

// A message is one line that a service writes for the supervisor: something that
// happened, or a span that ended.
type message struct {
	Event string `json:"event,omitempty"`
	Span  *span  `json:"span,omitempty"`
}

// An outlet writes messages.
type outlet struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func (o *outlet) send(m message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.enc.Encode(m)
}

// serve is a service that serves one request: it needs the lock, and works under
// it until in ends.
func serve(ctx context.Context, name, connect string, in io.Reader, out io.Writer) (err error) {
	to := &outlet{enc: json.NewEncoder(out)}
	provider, err := newProvider(ctx, name, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, provider.Shutdown(ctx)) }()

	client, err := framework.NewClient(connect,
		framework.WithTracerProvider(provider), framework.WithLogger(newLogger(name, to)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	mutex, err := lock.NewMutex(client, "/traced-lock/stock", recipes.WithName("stock"))
	if err != nil {
		return err
	}

	tracer := provider.Tracer("traced-lock")
	ctx, request := tracer.Start(ctx, "POST /"+name)
	defer request.End()
	return lock.Do(ctx, mutex, func(ctx context.Context, _ *lock.Lease) error {
		_, work := tracer.Start(ctx, "update stock") // nests below the hold
		defer work.End()
		if err := to.send(message{Event: "holds"}); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, in)
		return err
	})
}

// newProvider returns what makes the service's spans: they go to the supervisor,
// and to the collector that the environment names.
func newProvider(ctx context.Context, service string, to *outlet) (*sdktrace.TracerProvider, error) {
	opts := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(resource.NewSchemaless(semconv.ServiceName(service))),
		sdktrace.WithSyncer(&exporter{service, to}),
	}
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" {
		otlp, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, err
		}
		opts = append(opts, sdktrace.WithBatcher(otlp))
	}
	return sdktrace.NewTracerProvider(opts...), nil
}

// newLogger returns a logger that shows the moments of the lock, and tells the
// supervisor when the service waits and knows for whom.
func newLogger(service string, to *outlet) *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{
		NameKey: "name", MessageKey: "message", ConsoleSeparator: "  ",
		EncodeDuration: zapcore.StringDurationEncoder,
	})
	core := zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), zap.DebugLevel)
	return zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if e.Message == "blocked" {
			return to.send(message{Event: "waits"})
		}
		return nil
	})).Named(service)
}
