package chaos_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/lab/history"
)

// A surrounding of a client in its process may block: what its log is written to, the connections of its
// dialer, and the exporter of its spans. A worker has all three, and blocks one of them when the run
// says so.
type surrounding string

const (
	logSink   surrounding = "log"
	closing   surrounding = "close"
	exporting surrounding = "export"
)

// surroundings are a worker's.
type surroundings struct {
	mu    sync.Mutex // guards following
	until map[surrounding]time.Time
}

// obeyLoop is started by runWorker and ends with the run, which closes the input. Each line of it blocks
// a surrounding for some time.
func (s *surroundings) obeyLoop(lines io.Reader) {
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		what, length, _ := strings.Cut(scanner.Text(), " ")
		d, err := time.ParseDuration(length)
		if err != nil {
			panic(err)
		}
		s.block(surrounding(what), d)
	}
}

func (s *surroundings) block(what surrounding, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = make(map[surrounding]time.Time)
	}
	s.until[what] = time.Now().Add(d)
}

// wait returns when the surrounding is not blocked.
func (s *surroundings) wait(what surrounding) {
	s.mu.Lock()
	d := time.Until(s.until[what])
	s.mu.Unlock()
	if d > 0 {
		time.Sleep(d)
	}
}

// options have a client surrounded. At debug level, everything that the client logs may be held up.
func (s *surroundings) options(level zapcore.Level) []framework.Option {
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), sink{s}, level)
	return []framework.Option{
		framework.WithLogger(zap.New(core)),
		framework.WithDialer(s.dial),
		framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter{s}))),
	}
}

type sink struct{ *surroundings }

func (s sink) Write(line []byte) (int, error) {
	s.wait(logSink)
	return len(line), nil
}

func (s sink) Sync() error { return nil }

type exporter struct{ *surroundings }

func (e exporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	e.wait(exporting)
	return nil
}

func (exporter) Shutdown(context.Context) error { return nil }

func (s *surroundings) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return tunnel{conn, s}, nil
}

// A tunnel is a connection that may take long to close.
type tunnel struct {
	net.Conn
	surroundings *surroundings
}

func (c tunnel) Close() error {
	c.surroundings.wait(closing)
	return c.Conn.Close()
}

// blocked blocks a worker's surrounding, and cuts the worker off until it lost its session and another
// one may have its leases.
func (r *run) blocked(what surrounding) harm {
	return func(ctx context.Context, _ dice, s *slot, grant history.Record) bool {
		if _, err := fmt.Fprintf(s.current().stdin, "%s %v\n", what, 2*longestSession); err != nil {
			return false
		}
		r.cutOff(ctx, dice{}, s, grant) // a worker that is not notified of its loss is no less cut off
		return true
	}
}

// Each surrounding can be blocked, and nothing else then is.
func TestSurroundingsBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left, _ := net.Pipe()
		for what, use := range map[surrounding]func(s *surroundings){
			logSink:   func(s *surroundings) { _, _ = sink{s}.Write(nil) },
			closing:   func(s *surroundings) { _ = tunnel{left, s}.Close() },
			exporting: func(s *surroundings) { _ = exporter{s}.ExportSpans(t.Context(), nil) },
		} {
			for blocked, want := range map[surrounding]time.Duration{logSink: 0, closing: 0, exporting: 0, what: time.Second} {
				var s surroundings
				s.obeyLoop(strings.NewReader(string(blocked) + " 1s\n"))
				start := time.Now()
				use(&s)
				if took := time.Since(start); took != want {
					t.Errorf("with the %s blocked, the %s took %v, want %v", blocked, what, took, want)
				}
			}
		}
	})
}
