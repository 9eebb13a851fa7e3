package session_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

const timeout = 10 * time.Second

var errStopped = errors.New("stopped by the test")

// A client records what its session reports.
type client struct {
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	closing atomic.Bool
	close   context.CancelFunc
	wg      sync.WaitGroup

	mu      sync.Mutex // guards following
	reports []string
}

func (c *client) report(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reports = append(c.reports, what)
}

// has reports whether the session has made the reports, in that order.
func (c *client) has(reports ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reports {
		if len(reports) > 0 && reports[0] == r {
			reports = reports[1:]
		}
	}
	return len(reports) == 0
}

func (c *client) Connect(ctx context.Context, t hosts.Target) (net.Conn, error) {
	return c.dial(ctx, "tcp", t.DialAddr())
}

func (c *client) StartSASL(context.Context, string) (wire.Exchange, error) { return nil, nil }
func (c *client) Credentials() []wire.Credential                           { return nil }
func (c *client) Refused() bool                                            { return false }
func (c *client) BeginRound(*session.Session)                              { c.report("round begins") }

func (c *client) RoundFailed() { c.report("round failed") }

func (c *client) Failed(server string, _ error)      { c.report("failed: " + server) }
func (c *client) Connected(*session.Session)         { c.report("connected") }
func (c *client) Suspended(*session.Session, error)  { c.report("suspended") }
func (c *client) AuthFailed(*session.Session, error) { c.report("auth failed") }

func (c *client) Enter() bool {
	if c.closing.Load() {
		return false
	}
	c.wg.Add(1)
	return true
}

func (c *client) Leave() { c.wg.Done() }

// withSession runs fn in virtual time with a session of c, whose loop ends with fn. ended has the
// cause.
func withSession(t *testing.T, fn func(t *testing.T, srv *zkserver.Server, c *client, s *session.Session, ended <-chan error)) {
	t.Helper()
	withLoggingSession(t, zap.NewNop(), fn)
}

// withLoggingSession is withSession with a log.
func withLoggingSession(
	t *testing.T, log *zap.Logger, fn func(t *testing.T, srv *zkserver.Server, c *client, s *session.Session, ended <-chan error),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
		ctx, cancel := context.WithCancel(t.Context())
		c := &client{dial: srv.Dial, close: cancel}
		s, err := session.New(ctx, session.Config{
			Client:         c,
			Log:            log,
			Servers:        hosts.New([]string{srv.Addr()}, nil, nil),
			Timeout:        timeout,
			ConnectTimeout: time.Second,
			MaxRequest:     1 << 20,
			MaxReply:       1 << 20,
			Margin:         func(timeout time.Duration) time.Duration { return timeout / 5 },
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Run() }() // ends with the session
		fn(t, srv, c, s, ended)
		s.Cancel(errStopped)
		s.Retire()
		c.wg.Wait()
		cancel()
	})
}

// await waits, in virtual time, until done returns true.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 1000 {
		synctest.Wait()
		if done() {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	t.Fatalf("in vain for 100 s: %s", what)
}

func connected(t *testing.T, c *client) {
	t.Helper()
	await(t, "a connection", func() bool { return c.has("connected") })
}

func TestSessionReportsItsConnections(t *testing.T) {
	withSession(t, func(t *testing.T, srv *zkserver.Server, c *client, s *session.Session, ended <-chan error) {
		connected(t, c)
		id := s.ID()
		srv.Cut()
		await(t, "the next connection", func() bool { return c.has("connected", "suspended", "connected") })
		if s.ID() != id || id == 0 || s.Timeout() != timeout {
			t.Errorf("session %#x with the timeout %v, want %#x with %v", s.ID(), s.Timeout(), id, timeout)
		}
		s.Cancel(errStopped)
		if err := <-ended; !errors.Is(err, errStopped) {
			t.Errorf("ended with %v, want the cause", err)
		}
	})
}

func TestSessionReportsFailedAttempts(t *testing.T) {
	withSession(t, func(t *testing.T, srv *zkserver.Server, c *client, _ *session.Session, _ <-chan error) {
		connected(t, c)
		srv.Refuse()
		srv.Cut()
		await(t, "a failed round", func() bool {
			return c.has("suspended", "failed: "+srv.Addr(), "round failed", "round begins")
		})
		srv.Accept()
		await(t, "the next connection", func() bool { return c.has("round begins", "connected") })
	})
}

// TestPanicsOfALossAreLogged has what recipes do about a loss panic, at once or late.
func TestPanicsOfALossAreLogged(t *testing.T) {
	for _, late := range []time.Duration{0, 3 * time.Second} {
		core, logs := observer.New(zap.ErrorLevel)
		withLoggingSession(t, zap.New(core), func(t *testing.T, _ *zkserver.Server, c *client, s *session.Session, ended <-chan error) {
			connected(t, c)
			var losing, cleaning session.Hold
			for _, h := range []*session.Hold{&losing, &cleaning} {
				if !s.Take(h) {
					t.Fatal("the session is over")
				}
			}
			fails := func(what string) {
				if late > 0 {
					<-time.After(late)
				}
				panic(what)
			}
			losing.OnLoss(func(error) { fails("in lose") }, func() {})
			cleaning.OnLoss(func(error) {}, func() { fails("in after") })
			s.Cancel(errStopped)
			<-ended
			<-time.After(time.Minute)
			for _, want := range []string{"in lose", "in after"} {
				if logs.FilterField(zap.String("panic", want)).Len() == 0 {
					t.Errorf("%v late: no line about the panic %q", late, want)
				}
			}
		})
	}
}

func TestSecuredHoldIsLostAtTheDeadline(t *testing.T) {
	withSession(t, func(t *testing.T, srv *zkserver.Server, c *client, s *session.Session, ended <-chan error) {
		connected(t, c)
		var h session.Hold
		if !s.Take(&h) {
			t.Fatal("the session is over")
		}
		for fresh := false; !fresh; {
			var err error
			if err = session.Effect(t.Context(), s, requests.Prove()); err == nil {
				err = s.AwaitFresh(t.Context())
			}
			if fresh, _ = h.Secure(); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(3 * timeout) // heartbeats move the deadline on
		if err := h.Err(); err != nil {
			t.Fatalf("lost without a fault: %v", err)
		}
		var order []string
		h.OnLoss(func(error) {
			if s.Context().Err() == nil {
				order = append(order, "lost first")
			}
		}, func() {})
		srv.Freeze()
		frozen := time.Now()
		if err := <-ended; !errors.Is(err, zkerr.ErrSessionDeadline) || !errors.Is(h.Err(), zkerr.ErrSessionDeadline) {
			t.Errorf("session ended with %v, hold with %v; want ErrSessionDeadline", err, h.Err())
		}
		<-h.Lost()
		if took := time.Since(frozen); took > timeout-timeout/5 {
			t.Errorf("lost after %v, want a margin before the timeout of %v", took, timeout)
		}
		if !slices.Equal(order, []string{"lost first"}) || s.HeldAtEnd() != 1 || s.Take(new(session.Hold)) {
			t.Errorf("order %v, %d holds at the end", order, s.HeldAtEnd())
		}
		srv.Thaw()
	})
}

func TestRequestsOfAClosingClientFail(t *testing.T) {
	withSession(t, func(t *testing.T, _ *zkserver.Server, c *client, s *session.Session, _ <-chan error) {
		connected(t, c)
		c.close()
		if err := session.Effect(t.Context(), s, requests.Touch()); !errors.Is(err, zkerr.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}
