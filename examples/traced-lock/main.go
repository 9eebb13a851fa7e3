// Traced-lock shows why a request was slow: another request, in another service, held the lock.
// Two services, each with a client and a tracer as a process of its own would have, contend for one
// lock. The program prints the traces of both as trees, with the link from the waiter to the holder
// that it waited for. A program of yours has an exporter that sends them to a collector.
//
//	go run ./examples/traced-lock                          on a server within the program
//	go run ./examples/traced-lock -connect localhost:2181  on yours
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
)

// A service serves requests that need the lock.
type service struct {
	name    string
	client  *framework.Client
	mutex   *lock.Mutex
	tracers *sdktrace.TracerProvider
	spans   *tracetest.InMemoryExporter
	blocked chan struct{} // closed when the service knows for whom it waits
}

func newService(zk harness.ZooKeeper, name string, log zapcore.WriteSyncer) (*service, error) {
	s := &service{name: name, spans: tracetest.NewInMemoryExporter(), blocked: make(chan struct{})}
	s.tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
	var err error
	s.client, err = framework.NewClient(zk.Connect, zk.Dialer,
		framework.WithTracerProvider(s.tracers), framework.WithLogger(s.logger(log)))
	if err != nil {
		return nil, err
	}
	if s.mutex, err = lock.NewMutex(s.client, "/traced-lock/stock", recipes.WithName("stock")); err != nil {
		return nil, errors.Join(err, s.client.Close())
	}
	return s, nil
}

// logger returns a logger that shows the moments of the lock, and tells when the service is blocked.
func (s *service) logger(log zapcore.WriteSyncer) *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{
		NameKey: "name", MessageKey: "message", ConsoleSeparator: "  ",
		EncodeDuration: zapcore.StringDurationEncoder,
	})
	core := zapcore.NewCore(encoder, log, zap.DebugLevel)
	return zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if e.Message == "blocked" {
			close(s.blocked)
		}
		return nil
	})).Named(s.name)
}

// serve serves one request, whose work needs the lock.
func (s *service) serve(ctx context.Context, work func()) error {
	tracer := s.tracers.Tracer("traced-lock")
	ctx, request := tracer.Start(ctx, "POST /"+s.name)
	defer request.End()
	return lock.Do(ctx, s.mutex, func(ctx context.Context, _ *lock.Lease) error {
		_, update := tracer.Start(ctx, "update stock") // nests below the hold
		defer update.End()
		work()
		return nil
	})
}

// contend lets one service have the lock while another comes to wait for it, and returns the traces of both.
func contend(ctx context.Context, zk harness.ZooKeeper, log zapcore.WriteSyncer) (traces *forest, err error) {
	var both [2]*service
	for i, name := range []string{"billing", "checkout"} {
		if both[i], err = newService(zk, name, log); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, both[i].client.Close()) }()
	}
	billing, checkout := both[0], both[1]
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	holds, waited := make(chan struct{}), make(chan error, 1)
	go func() { // ends with ctx
		select {
		case <-holds:
			waited <- checkout.serve(ctx, func() {})
		case <-ctx.Done():
			waited <- ctx.Err()
		}
	}()
	err = billing.serve(ctx, func() {
		close(holds)
		select {
		case <-checkout.blocked:
			<-time.After(300 * time.Millisecond) // the work
		case <-ctx.Done():
		}
	})
	err = errors.Join(err, <-waited)
	return newForest(billing, checkout), err
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) error {
	log := zapcore.Lock(zapcore.AddSync(out)) // of both services
	traces, err := contend(ctx, zk, log)
	if err == nil {
		fmt.Fprintf(log, "\n%v", traces)
	}
	return err
}

func main() { harness.Main(run) }
