package framework_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// logText returns the lines that were logged, with their fields. Sessions are numbered in their order.
func logText(logs *observer.ObservedLogs) string {
	var out strings.Builder
	sessions := make(map[any]int)
	for _, line := range logs.All() {
		fmt.Fprintf(&out, "%s %s\n", line.Level.CapitalString(), line.Message)
		fields := line.ContextMap()
		if id := fields[zktel.AttrSessionID]; id != nil {
			if sessions[id] == 0 {
				sessions[id] = len(sessions) + 1
			}
			fields[zktel.AttrSessionID] = sessions[id]
		}
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			fmt.Fprintf(&out, "  %s: %v\n", key, fields[key])
		}
	}
	return out.String()
}

// TestLogs compares what clients log with files of testdata/telemetry.
func TestLogs(t *testing.T) {
	t.Parallel()
	expire := func(t *testing.T, srv *zkserver.Server, c *framework.Client) {
		t.Helper()
		must.OK(t, srv.Expire(c.Session().ID))
		sleep(time.Second)
		must.OK(t, c.Close())
	}
	for name, live := range map[string]func(t *testing.T, srv *zkserver.Server, logger framework.Option){
		"an expired session": func(t *testing.T, srv *zkserver.Server, logger framework.Option) {
			expire(t, srv, virtual(t, srv, logger))
		},
		"an expired session with a hold": func(t *testing.T, srv *zkserver.Server, logger framework.Option) {
			c := virtual(t, srv, logger)
			mustHold(t, c)
			expire(t, srv, c)
		},
		// The servers bound the session timeout.
		"a client that gets a shorter session timeout than it asked for": func(t *testing.T, srv *zkserver.Server, logger framework.Option) {
			virtual(t, srv, logger, framework.WithSessionTimeout(5*time.Minute), framework.WithLeaseMargin(time.Minute))
			sleep(time.Second)
			srv.Cut()
			sleep(time.Second)
		},
		// A chroot with a typing error is a tree of its own, in which every lock is free.
		"a chroot that the first of two clients makes": func(t *testing.T, srv *zkserver.Server, logger framework.Option) {
			for i := range 2 {
				c := connect(t, srv.Addr()+"/prdo/locks", framework.WithDialer(srv.Dial), logger)
				synctest.Wait() // its first line is there
				for _, path := range []string{"/a/b/c", "/d/e"} {
					must.Get(c.Create(t.Context(), path+strconv.Itoa(i), nil, framework.WithParents()))(t)
				}
				must.OK(t, c.Close())
			}
		},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			core, logs := observer.New(zap.InfoLevel)
			live(t, srv, framework.WithLogger(zap.New(core)))
			checkGolden(t, "log of "+name, logText(logs))
		})
	}
}

// spanHandler notes which spans its records belong to.
type spanHandler struct {
	slog.Handler
	mu    sync.Mutex // guards following
	spans map[string]trace.SpanID
}

func (h *spanHandler) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spans[r.Message] = trace.SpanContextFromContext(ctx).SpanID()
	return h.Handler.Handle(ctx, r)
}

func TestWithSlogLogsWithTheContextOfTheCall(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		var out record
		handler := &spanHandler{
			Handler: slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}),
			spans:   make(map[string]trace.SpanID),
		}
		tr, route := newTraces(), env.Route(t)
		c := route.Client(t, framework.WithSlog(slog.New(handler)), framework.WithTracerProvider(tr.provider))
		route.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore})
		must.Get2(c.Get(tr.caller(t), "/"))(t)
		handler.mu.Lock()
		defer handler.mu.Unlock()
		if got, want := handler.spans["attempt failed, there will be another"], tr.spans.GetSpans()[0].SpanContext.SpanID(); got != want {
			t.Errorf("the line is of span %v, want %v", got, want)
		}
		for _, part := range []string{`"level":"INFO","msg":"connection state changed","logger":"zk"`, `"zookeeper.client.connection.state":"connected"`, `"error.type":"connection_loss"`} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("the log does not have %s:\n%s", part, out.String())
			}
		}
	})
}

// TestOutage_is_retried_with_pauses has a call retry through an outage that ends
// the session. The policy pauses for a millisecond only.
func TestOutage_is_retried_with_pauses(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const outage = 10 * time.Minute
		var dials atomic.Int64
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return srv.Dial(ctx, network, addr)
		}
		var rec record
		c := connect(t, srv.Addr(), framework.WithDialer(dial), framework.WithLogger(rec.logger()),
			framework.WithRetry(retry.Forever(time.Millisecond)))
		disconnect(srv)
		ctx := within(t, outage)
		wantErr(t, "children", last(c.Children(ctx, "/")), context.DeadlineExceeded)
		if n, most := dials.Load(), int64(2*outage/time.Second); n < 10 || n > most {
			t.Errorf("%d attempts to connect within %v, want 10 to %d", n, outage, most)
		}
		log := rec.String() // DEBUG has a line for each attempt
		wantBetween(t, "log lines above DEBUG", strings.Count(log, "\n")-strings.Count(log, `"L":"DEBUG"`), 2, 50)
		srv.Accept()
		wantErr(t, "after the outage", last(c.Children(t.Context(), "/")), nil)
	})
}

// refuse is a dialer to addresses where no server listens.
func refuse(_ context.Context, network, addr string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
}

func TestASilentClientIsNoMore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		harm func(*zkserver.Server) dialFunc
		opts []framework.Option
		want string // in the line, in addition to the address, and in the error of a call
		kind error  // of a call
	}{
		"no server listens": {
			harm: func(*zkserver.Server) dialFunc { return refuse },
			want: "connection refused",
			kind: framework.ErrNotConnected,
		},
		"no ZooKeeper answers": {
			harm: func(srv *zkserver.Server) dialFunc {
				srv.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.Garbage, Times: fault.Forever})
				return srv.Dial
			},
			want: "not a ZooKeeper handshake",
			kind: framework.ErrNotConnected,
		},
		"a credential is refused": {
			harm: func(srv *zkserver.Server) dialFunc { return srv.Dial },
			opts: []framework.Option{framework.WithAuth("nosuchscheme", []byte(secret))},
			want: "credential refused",
			kind: framework.ErrAuthFailed,
		},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var out record
			handler := slog.NewTextHandler(&out, nil) // at level info
			opts := append(tc.opts, framework.WithDialer(tc.harm(srv)), framework.WithSlog(slog.New(handler)))
			c := newClient(t, "zk1.test", opts...)
			err := c.AwaitConnected(within(t, time.Second))
			wantErr(t, "AwaitConnected", err, tc.kind)
			wantText(t, err, tc.want)
			sleep(time.Second)
			line := lineWith(out.String(), "cannot connect")
			for _, part := range []string{"level=WARN", "server.address=zk1.test", tc.want} {
				if !strings.Contains(line, part) {
					t.Errorf("the line %q does not have %q", line, part)
				}
			}
			sleep(5 * time.Minute)
			wantBetween(t, "lines within five minutes", strings.Count(out.String(), "cannot connect"), 4, 6)
		})
	}
}

func TestTheFirstFailureOfEachOutageIsLogged(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		core, logs := observer.New(zap.InfoLevel)
		c, proxy := proxied(t, srv, framework.WithLogger(zap.New(core)))
		for outage := range 3 {
			sleep(time.Second) // a connection that lasted: the next attempt follows at once
			disconnect(proxy)
			sleep(100 * time.Millisecond)
			wantEqual(t, "lines of so many outages", logs.FilterMessage("cannot connect").Len(), outage+1)
			proxy.Heal()
			must.Get2(c.Children(t.Context(), "/"))(t)
		}
	})
}

// A server drops each connection soon after the handshake. Its log lines come at growing intervals, and
// say how many breaks they leave out.
func TestAConnectionThatBreaksAgainAndAgainFillsNoLog(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		core, logs := observer.New(zap.InfoLevel)
		c, proxy := proxied(t, srv, framework.WithLogger(zap.New(core)))
		breaks := 0
		c.OnState(func(change framework.StateChange) {
			if change.To == framework.Suspended {
				breaks++
			}
		})
		for range 6000 { // some ten minutes
			sleep(100 * time.Millisecond)
			proxy.Cut()
		}
		sleep(10 * time.Minute)
		proxy.Cut() // after a quiet time
		sleep(time.Second)
		said := 0
		lines := logs.FilterMessage("connection state changed").All()
		for _, line := range lines {
			fields := line.ContextMap()
			if left, ok := fields["zookeeper.client.lines_left_out"].(int64); ok {
				said += int(left)
			}
			if fields["zookeeper.client.connection.state"] == "suspended" {
				said++
			}
		}
		if breaks < 1000 || len(lines) > 40 {
			t.Errorf("%d lines about %d breaks, want at most 40 about more than 1000", len(lines), breaks)
		}
		if said < breaks*2/3 {
			t.Errorf("the lines tell of %d breaks, of %d", said, breaks)
		}
		wantEqual(t, "state in the last line", lines[len(lines)-1].ContextMap()["zookeeper.client.connection.state"], "connected")
		before := lines[len(lines)-2]
		if before.ContextMap()["zookeeper.client.connection.state"] != "suspended" {
			t.Errorf("the break after a quiet time is not logged: %v", before)
		}
	})
}

// TestAnOutageAfterManyBreaksIsLogged has servers go away after lines about the connection were left out.
func TestAnOutageAfterManyBreaksIsLogged(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		core, logs := observer.New(zap.InfoLevel)
		_, proxy := proxied(t, srv, framework.WithLogger(zap.New(core)))
		lines := func() int { return logs.FilterMessage("cannot connect").Len() }
		for range 1650 { // some four minutes: the line after that is due in one more
			sleep(100 * time.Millisecond)
			disconnect(proxy)
			sleep(50 * time.Millisecond)
			proxy.Heal()
		}
		before := lines()
		if before > 40 {
			t.Errorf("%d lines about 1650 breaks, want at most 40", before)
		}
		disconnect(proxy)
		sleep(20 * time.Second)
		if lines() == before {
			t.Error("an outage of 20 s has no line")
		}
	})
}

func TestConnection_closed_by_the_client_has_a_reason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		harm func(t *testing.T, c *framework.Client, proxy *zkproxy.Proxy)
		want string
	}{
		"the server stopped answering": {func(t *testing.T, c *framework.Client, proxy *zkproxy.Proxy) {
			mustHold(t, c)
			proxy.Blackhole(zkproxy.Both)
		}, "server did not answer for 4s"},
		"its server was removed": {func(t *testing.T, c *framework.Client, _ *zkproxy.Proxy) {
			must.OK(t, c.SetServers("other.test"))
		}, "the server is no longer among those that the client goes to"},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var seen trail
			c, proxy := proxied(t, srv, framework.WithStateListener(seen.add))
			tc.harm(t, c, proxy)
			sleep(span / 2)
			cause := seen.last(suspended).Cause
			if cause == nil || cause.Error() != tc.want {
				t.Errorf("the cause is %v, want %q", cause, tc.want)
			}
		})
	}
}

func TestCredential_that_is_too_large(t *testing.T) {
	t.Parallel()
	const room = framework.MinPacket
	for length, want := range map[int]bool{room - 26: true, room - 25: false, 2 * room: false} {
		c, err := framework.NewClient("localhost", framework.WithAuth("digest", append([]byte("u:"), make([]byte, length-2)...)),
			framework.WithMaxPacket(room, room), framework.WithDialer(refuse), framework.WithRetry(retry.Never()))
		if (err == nil) != want {
			t.Errorf("a credential of %d bytes: %v", length, err)
		}
		if err == nil {
			_ = c.Close()
		} else if !strings.Contains(err.Error(), "credential 0") || !strings.Contains(err.Error(), "4096") {
			t.Errorf("the error %q names neither argument nor bound", err)
		}
	}
}
