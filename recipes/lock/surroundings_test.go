package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// The tests of this file give the client what its user gives it: a log, exporters, listeners, a dialer,
// connections, SASL. From the moment of an outage on, one of them does what it should not.

// A hostile does what no function of a user's should do, once it is on.
type hostile struct {
	on      atomic.Bool
	calls   atomic.Bool
	release chan struct{} // closed at the end of the test
	how     string
	client  *framework.Client
}

const (
	blocks    = "blocks"
	panics    = "panics"
	callsBack = "calls the client"
)

// act is called by a function of the user's.
func (h *hostile) act() {
	if !h.on.Load() {
		return
	}
	switch h.how {
	case blocks:
		<-h.release
	case panics:
		panic("by the test")
	case callsBack:
		if !h.calls.CompareAndSwap(false, true) {
			return // the call has ended a span, or written a log line
		}
		defer h.calls.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _, _ = h.client.Children(ctx, "/") // that it returns is the test
		h.client.State()
	}
}

// fail is act for a function that can refuse a server: once h is on, it does.
func (h *hostile) fail() error {
	if !h.on.Load() {
		return nil
	}
	h.act()
	return errors.New("refused by the test")
}

// A hostileConn acts in one of its methods.
type hostileConn struct {
	net.Conn
	in string
	h  *hostile
}

func (c hostileConn) actIn(method string) {
	if c.in == method {
		c.h.act()
	}
}

func (c hostileConn) Read(p []byte) (int, error) {
	c.actIn("Read")
	return c.Conn.Read(p)
}

func (c hostileConn) Write(p []byte) (int, error) {
	c.actIn("Write")
	return c.Conn.Write(p)
}

func (c hostileConn) Close() error {
	c.actIn("Close")
	return c.Conn.Close()
}

func (c hostileConn) SetReadDeadline(at time.Time) error {
	c.actIn("SetDeadline")
	return c.Conn.SetReadDeadline(at)
}

func (c hostileConn) SetWriteDeadline(at time.Time) error {
	c.actIn("SetDeadline")
	return c.Conn.SetWriteDeadline(at)
}

// A hostileProcessor is a span processor that acts when a span ends.
type hostileProcessor struct {
	sdktrace.SpanProcessor
	h *hostile
}

func (p hostileProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (p hostileProcessor) OnEnd(sdktrace.ReadOnlySpan)                     { p.h.act() }
func (p hostileProcessor) Shutdown(context.Context) error                  { return nil }
func (p hostileProcessor) ForceFlush(context.Context) error                { return nil }

// A hostileMeters has meters whose counters act.
type hostileMeters struct {
	noop.MeterProvider
	h *hostile
}

func (m hostileMeters) Meter(string, ...metric.MeterOption) metric.Meter { return hostileMeter{h: m.h} }

type hostileMeter struct {
	noop.Meter
	h *hostile
}

func (m hostileMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return hostileCounter{h: m.h}, nil
}

type hostileCounter struct {
	noop.Int64Counter
	h *hostile
}

func (c hostileCounter) Add(context.Context, int64, ...metric.AddOption) { c.h.act() }

// A hostileSASL is a mechanism that proves nothing, as the embedded server knows no SASL. It acts in one
// of its methods.
type hostileSASL struct {
	in string
	h  *hostile
}

func (m hostileSASL) actIn(method string) error {
	if m.in != method {
		return nil
	}
	return m.h.fail()
}

func (m hostileSASL) Start(context.Context, string) (framework.Exchange, error) {
	return m, m.actIn("Start")
}

func (m hostileSASL) Next([]byte) (token []byte, done bool, err error) {
	return nil, true, m.actIn("Next")
}

// A dialFunc connects a client to addr.
type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// surroundings are what a user gives to a client, by name. dial reaches the server.
func surroundings() map[string]func(h *hostile, dial dialFunc) []framework.Option {
	all := map[string]func(h *hostile, dial dialFunc) []framework.Option{
		"span processor": func(h *hostile, _ dialFunc) []framework.Option {
			provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(hostileProcessor{h: h}))
			return []framework.Option{framework.WithTracerProvider(provider)}
		},
		"counter": func(h *hostile, _ dialFunc) []framework.Option {
			return []framework.Option{framework.WithMeterProvider(hostileMeters{h: h})}
		},
		"listener": func(h *hostile, _ dialFunc) []framework.Option {
			return []framework.Option{framework.WithStateListener(func(framework.StateChange) { h.act() })}
		},
		"OnLost": func(*hostile, dialFunc) []framework.Option { return nil },
		"dialer": func(h *hostile, dial dialFunc) []framework.Option {
			return []framework.Option{framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				h.act()
				return dial(ctx, network, addr)
			})}
		},
		"resolver": func(h *hostile, _ dialFunc) []framework.Option {
			return []framework.Option{framework.WithResolver(func(context.Context, string) ([]string, error) {
				h.act()
				return []string{"127.0.0.1"}, nil
			})}
		},
	}
	for _, level := range []zapcore.Level{zap.DebugLevel, zap.InfoLevel, zap.WarnLevel, zap.ErrorLevel} {
		all["log at "+level.String()] = func(h *hostile, _ dialFunc) []framework.Option {
			core, _ := observer.New(zap.DebugLevel)
			return []framework.Option{framework.WithLogger(zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
				if e.Level == level {
					h.act()
				}
				return nil
			})))}
		}
	}
	for _, method := range []string{"Read", "Write", "Close", "SetDeadline"} {
		all["connection's "+method] = func(h *hostile, dial dialFunc) []framework.Option {
			return []framework.Option{framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return hostileConn{conn, method, h}, nil
			})}
		}
	}
	for _, method := range []string{"Start", "Next"} {
		all[inHandshake+"SASL's "+method] = func(h *hostile, _ dialFunc) []framework.Option {
			return []framework.Option{framework.WithSASL(hostileSASL{method, h})}
		}
	}
	return all
}

// inHandshake begins the names of surroundings that are called only if the server answers.
const inHandshake = "handshake: "

// TestLossBeforeSuccession_in_hostile_surroundings lets one thing at a time that the user gives to the
// client block forever, panic or call the client, from the moment of an outage on.
// The lease is lost in time in every way, and Close returns.
func TestLossBeforeSuccession_in_hostile_surroundings(t *testing.T) {
	t.Parallel()
	outages := map[string]func(*zkproxy.Proxy){
		"silent": func(p *zkproxy.Proxy) { p.Blackhole(zkproxy.Both) },
		"broken": func(p *zkproxy.Proxy) { p.Refuse(); p.Cut() },
		"cut":    func(p *zkproxy.Proxy) { p.Cut() }, // the client reaches the server again
	}
	for name, options := range surroundings() {
		for _, how := range []string{blocks, panics, callsBack} {
			switch {
			case how == panics && strings.HasPrefix(name, "connection's "):
				continue // a net.Conn does not panic: see docs/adr/0041-deadline-enforcement.md
			case how == panics && (name == "counter" || name == "span processor"):
				continue // OpenTelemetry forbids it: see docs/adr/0012-panics-in-user-functions.md
			}
			for outage, begin := range outages {
				if strings.HasPrefix(name, inHandshake) != (outage == "cut") {
					continue
				}
				t.Run(fmt.Sprint(name, " ", how, ", ", outage), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := zkserver.Run(t, append(zkenv.DrawVersion(t), zkserver.WithTick(time.Second))...)
						proxy := behindPipe(t, srv)
						h := &hostile{how: how, release: make(chan struct{})}
						next := virtualClient(t, srv, framework.WithSessionTimeout(10*time.Second))
						holder := must.Get(framework.NewClient("zk.test:2181", append([]framework.Option{
							framework.WithDialer(proxy.Dial), framework.WithSessionTimeout(sessionAtStake),
						}, options(h, proxy.Dial)...)...))(t)
						h.client = holder
						must.OK(t, holder.AwaitConnected(t.Context()))
						hold := must.Get(holder.HoldSession(t.Context()))(t)
						if name == "OnLost" {
							hold.OnLost(func(error) { h.act() })
							hold.AfterLost(h.act)
						}
						lossAndCloseWith(t, holder, next, h, func() { begin(proxy) })
					})
				})
			}
		}
	}
}

// lossAndCloseWith has holder hold a mutex and next wait for it. It begins the outage with h on, and
// checks that the lease is lost, in every way, before next is granted the lock, and that Close of the
// holder returns.
func lossAndCloseWith(t *testing.T, holder, next *framework.Client, h *hostile, outage func()) {
	t.Helper()
	const path = "/hostile"
	l := mustLock(t, newMutex(t, holder, path))
	ctx, cancel := l.Context(t.Context())
	defer cancel()
	granted := make(chan *lock.Lease, 1)
	go func() {
		successor, err := newMutex(t, next, path).Lock(t.Context())
		if err != nil {
			t.Error(err)
		}
		granted <- successor
	}()
	awaitContenders(t, next, path, 2)
	h.on.Store(true)
	outage()
	successor := <-granted
	if ctx.Err() == nil || !closed(l.Lost()) {
		t.Errorf("the successor is granted the lock; context: %v, Lost is closed: %v", ctx.Err(), closed(l.Lost()))
	}
	checked := make(chan error, 1)
	go func() { checked <- l.Err() }()
	closed := make(chan error, 1)
	go func() {
		mustRelease(t, successor)
		closed <- holder.Close()
	}()
	limit := time.After(30 * time.Second)
	for what, done := range map[string]chan error{"Err": checked, "Close": closed} {
		select {
		case err := <-done:
			if what == "Err" && err == nil {
				t.Error("the successor is granted the lock, and Err is nil")
			}
		case <-limit:
			t.Errorf("%s has not returned after 30 s", what)
		}
	}
	close(h.release)
	synctest.Wait()
}
