package framework_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestAPanicOnAGoroutineOfTheClientsIsLogged makes each function panic, a user's or a recipe's, that the client
// calls on a goroutine of its own: the client goes on.
func TestAPanicOnAGoroutineOfTheClientsIsLogged(t *testing.T) {
	t.Parallel()
	lossOf := func(register func(h *framework.SessionHold)) func(*testing.T, *zkserver.Server, ...framework.Option) {
		return func(t *testing.T, srv *zkserver.Server, opts ...framework.Option) {
			t.Helper()
			c := virtual(t, srv, opts...)
			register(mustHold(t, c))
			must.OK(t, srv.Expire(c.Session().ID))
			sleep(time.Minute)
			mustCreate(t, c, "/after", "")
		}
	}
	panics := func() { panic("by the test") }
	late := func() { <-time.After(3 * time.Second); panics() }
	for name, provoke := range map[string]func(t *testing.T, srv *zkserver.Server, opts ...framework.Option){
		"SessionHold.OnLost":              lossOf(func(h *framework.SessionHold) { h.OnLost(func(error) { late() }) }),
		"SessionHold.AfterLost":           lossOf(func(h *framework.SessionHold) { h.AfterLost(late) }),
		"a context's parent":              lossOf(func(h *framework.SessionHold) { h.OnLoss(func(error) { panics() }, func() {}) }),
		"the clean-up after a lost lease": lossOf(func(h *framework.SessionHold) { h.OnLoss(func(error) {}, late) }),
		"Watch.AfterFire": func(t *testing.T, srv *zkserver.Server, opts ...framework.Option) {
			c := virtual(t, srv, opts...)
			mustWatch(t, c, "/", framework.WatchChildren).AfterFire(func() { panic("by the test") })
			mustCreate(t, c, "/after", "")
		},
		"WithDialer": func(t *testing.T, srv *zkserver.Server, opts ...framework.Option) {
			var dials atomic.Int32
			virtual(t, srv, append(opts, framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				if dials.Add(1) == 1 {
					panic("by the test")
				}
				return srv.Dial(ctx, network, addr)
			}))...)
		},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			core, logs := observer.New(zap.ErrorLevel)
			provoke(t, srv, framework.WithLogger(zap.New(core)))
			synctest.Wait()
			lines := logs.FilterMessage("a function of the user's panicked").FilterField(zap.String("function", name))
			if lines.Len() != 1 {
				t.Fatalf("%d lines of the panic, want 1: %v", lines.Len(), logs.All())
			}
			if fields := lines.All()[0].ContextMap(); fields["panic"] != "by the test" || fields["stack"] == nil {
				t.Errorf("fields %v, want the panic and its stack", fields)
			}
		})
	}
}

// The tests of this file hold promised times to the letter, in virtual time.

// A goroutine that is left is a deadlock.
func TestCloseTakesASecondAtTheMost(t *testing.T) {
	t.Parallel()
	frozen := func(s *zkserver.Server) { s.Freeze() }
	for name, tc := range map[string]struct {
		trouble func(*zkserver.Server)
		want    error
	}{
		"all is well":                   {func(*zkserver.Server) {}, nil},
		"the server refuses":            {func(s *zkserver.Server) { s.Refuse(); s.Cut() }, framework.ErrUnknownOutcome},
		"the server is frozen":          {frozen, framework.ErrUnknownOutcome},
		"a reply is outstanding":        {hold(fault.GetChildren), nil},
		"a create is outstanding":       {hold(fault.Create), nil},
		"the close is not answered":     {hold(fault.CloseSession), nil},
		"a handshake is not answered":   {func(s *zkserver.Server) { hold(fault.Connect)(s); s.Cut() }, framework.ErrUnknownOutcome},
		"nothing has been tried so far": {nil, nil},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(30*time.Second))
			if tc.trouble != nil {
				must.OK(t, c.AwaitConnected(t.Context()))
				mustHold(t, c)
				tc.trouble(srv)
			}
			for range 30 {
				go func() { _, _, _ = c.Children(t.Context(), "/") }()
				go func() { _, _ = c.Create(t.Context(), "/x/y", nil, framework.TTL(time.Second)) }()
			}
			<-time.After(time.Millisecond)
			closesInTime(t, c, tc.want)
			srv.Rules().Clear()
			srv.Thaw()
		})
	}
}

// hold withholds the replies to an operation.
func hold(op fault.Op) func(*zkserver.Server) {
	return func(s *zkserver.Server) {
		s.Rules().Add(fault.Rule{Op: op, Action: fault.HoldReply, Times: fault.Forever})
	}
}

// TestFrozenFrontEnd_costs_the_connect_timeout freezes the client's server, or the one that
// it goes to when its connection is cut.
func TestFrozenFrontEnd_costs_the_connect_timeout(t *testing.T) {
	t.Parallel()
	const connectTimeout = time.Second
	for name, trouble := range map[string]func(srv *zkserver.Server, current, next *zkserver.Frontend){
		"the client's own": func(_ *zkserver.Server, current, _ *zkserver.Frontend) { current.Freeze() },
		"the next, when the connection is cut": func(srv *zkserver.Server, _, next *zkserver.Frontend) {
			next.Freeze()
			srv.Cut()
		},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			order := srv.Frontends()
			c := virtual(t, srv, inTurn(srv, 0, 1, 2), framework.WithConnectTimeout(connectTimeout))
			id, held := c.Session().ID, mustHold(t, c)
			trouble(srv, order[0], order[1])
			start := time.Now()
			must.Get2(c.Children(t.Context(), "/"))(t)
			wantWithin(t, start, connectTimeout+time.Second)
			if err := held.Err(); err != nil || c.Session().ID != id {
				t.Errorf("session %#x, hold %v: want to keep session %#x", c.Session().ID, err, id)
			}
			srv.Thaw()
		}, zkserver.WithFrontends(3))
	}
}

// What connects may be a user's function that never returns: a client that keeps trying for days must
// not keep a goroutine for each attempt.
func TestCallsThatNeverReturnAreBounded(t *testing.T) {
	t.Parallel()
	const most = 64
	for name, option := range map[string]func(hang func()) framework.Option{
		"WithDialer": func(hang func()) framework.Option {
			return framework.WithDialer(func(context.Context, string, string) (net.Conn, error) {
				hang()
				return nil, net.ErrClosed
			})
		},
		"WithResolver": func(hang func()) framework.Option {
			return framework.WithResolver(func(context.Context, string) ([]string, error) {
				hang()
				return nil, net.ErrClosed
			})
		},
	} {
		runSynctest(t, name, func(t *testing.T) {
			var calls atomic.Int32
			release := make(chan struct{})
			c := must.Get(framework.NewClient("zk.test", option(func() {
				calls.Add(1)
				<-release
			})))(t)
			<-time.After(48 * time.Hour)
			wantEqual(t, "calls", calls.Load(), most)
			err := c.AwaitConnected(within(t, time.Minute))
			wantText(t, err, "earlier calls")
			close(release)
			synctest.Wait()
			<-time.After(time.Hour)
			if n := calls.Load(); n <= most {
				t.Errorf("%d calls: none after the earlier ones returned", n)
			}
			must.OK(t, c.Close())
		})
	}
}
