package framework_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestAHoldIsWaitedForAsLongAsItsContextLasts(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		srv.Refuse()
		c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithConnectTimeout(time.Second))
		const limit = 5500 * time.Millisecond // longer than an operation waits for a connection
		start := time.Now()
		_, err := c.HoldSession(within(t, limit))
		wantErr(t, "a hold that nobody could take", err, context.DeadlineExceeded, framework.ErrNotConnected)
		wantEqual(t, "time that it took", time.Since(start), limit)
		time.AfterFunc(5*time.Second, srv.Accept)
		h := must.Get(c.HoldSession(t.Context()))(t)
		if h.Session() == 0 || h.Session() != c.Session().ID {
			t.Errorf("a hold of session %#x, the client has %#x", h.Session(), c.Session().ID)
		}
		must.OK(t, c.Close())
		wantErr(t, "the hold of a closed client", h.Err(), framework.ErrClosed)
		wantErr(t, "to secure it", h.Secure(t.Context()), framework.ErrClosed)
		_, err = c.HoldSession(t.Context())
		wantErr(t, "a hold of a closed client", err, framework.ErrClosed)
		if op := (*framework.OpError)(nil); !errors.As(err, &op) || op.Op != "hold session" {
			t.Errorf("error %v, want one of the operation", err)
		}
	})
}

// stale returns a client whose session's deadline has passed while it is well, a
// hold of that moment, and has heartbeats meet a fault.
func stale(t *testing.T, srv *zkserver.Server, rule fault.Rule) *framework.SessionHold {
	t.Helper()
	c, proxy := proxied(t, srv)
	sleep(2 * span)
	rule.Op = fault.Multi
	proxy.Rules().Add(rule)
	h := mustTakeHold(t, c)
	if left := time.Until(h.Deadline()); left > 0 {
		t.Fatalf("the deadline is %v away", left)
	}
	return h
}

func TestSecureWaitsForTheAnswerAndNoLonger(t *testing.T) {
	t.Parallel()
	const late = 300 * time.Millisecond
	for name, tc := range map[string]struct {
		rule   fault.Rule
		atMost time.Duration // for the context
		want   time.Duration
		sooner bool // since the heartbeat may have met the fault
		err    error
	}{
		"an answer in time secures":         {fault.Rule{Action: fault.DelayReply, Delay: late, Times: fault.Forever}, time.Minute, late, false, nil},
		"a context that ends first is told": {fault.Rule{Action: fault.DelayReply, Delay: late, Times: fault.Forever}, late / 2, late / 2, false, context.DeadlineExceeded},
		"one that had ended asks nobody":    {fault.Rule{Action: fault.DelayReply, Delay: late, Times: fault.Forever}, 0, 0, false, context.DeadlineExceeded},
		"a cut costs another request":       {fault.Rule{Action: fault.CutBefore}, time.Minute, framework.DefaultLeaseMargin / 8, true, nil},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			h := stale(t, srv, tc.rule)
			ctx := within(t, tc.atMost)
			start := time.Now()
			err := h.Secure(ctx)
			if !errors.Is(err, tc.err) || tc.err == nil && err != nil {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			if took := time.Since(start); took > tc.want || took < tc.want && !tc.sooner {
				t.Errorf("it took %v, want %v", took, tc.want)
			}
			if tc.err == nil && time.Until(h.Deadline()) <= 0 {
				t.Error("secured although the deadline has passed")
			}
			wantErr(t, "the hold", h.Err(), nil)
		})
	}
}

// TestSecureAsksAtAPace has a server that refuses heartbeats by itself, to shed load: that
// proves nothing.
func TestSecureAsksAtAPace(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, srv.Addr(), framework.WithSessionTimeout(span), framework.WithDialer(srv.Dial))
		sleep(2 * span)
		h := mustTakeHold(t, c)
		shed := srv.Rules().Add(throttled(fault.Multi))
		const busy = 3 * time.Second
		time.AfterFunc(busy, shed.Remove)
		start := time.Now()
		must.OK(t, h.Secure(t.Context()))
		if left := time.Until(h.Deadline()); left <= 0 {
			t.Errorf("secured with %v left", left)
		}
		const pause = framework.DefaultLeaseMargin / 8
		took, asked := time.Since(start), shed.Hits()
		if most := int(busy/pause) + int(busy/grace) + 2; asked < 3 || asked > most || took < busy || took > busy+2*pause {
			t.Errorf("%d heartbeats were refused in %v, want some, and at most %d", asked, took, most)
		}
	})
}

// A hold is secured while what is presumed of the session lasts, which is longer than an operation waits for a
// connection. Secure ends with its context before that.
func TestSecureWaitsForAConnection(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, proxy := proxied(t, srv, framework.WithLeaseMargin(span/2), framework.WithConnectTimeout(time.Second))
		sleep(2 * span)
		h := mustTakeHold(t, c)
		sleep(span)
		disconnect(proxy)
		sleep(time.Until(h.Deadline()))
		const limit = 2500 * time.Millisecond // longer than the connect timeout
		start := time.Now()
		wantErr(t, "secure", h.Secure(within(t, limit)), context.DeadlineExceeded, framework.ErrNotConnected)
		wantEqual(t, "time that it took", time.Since(start), limit)
		secured := background(func() error { return h.Secure(t.Context()) })
		sleep(limit)
		wantEqual(t, "calls that have given up", len(secured), 0)
		proxy.Heal()
		check(t, <-secured)
	})
}

// A context ends when the connection has just broken, so both are there. The error says that the context has ended.
func TestSecureSaysThatItsContextEndedAtABreak(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		h := stale(t, srv, fault.Rule{Action: fault.HoldReply, Times: fault.Forever})
		ctx := &endsWhenAsked{}
		ctx.Context, ctx.cancel = context.WithCancel(t.Context())
		secured := background(func() error { return h.Secure(ctx) })
		sleep(time.Millisecond)
		ctx.ends.Store(true)
		srv.Cut()
		wantErr(t, "secure", <-secured, context.Canceled)
	})
}

// An endsWhenAsked is a context that ends when it is asked whether it has ended, once ends is set.
type endsWhenAsked struct {
	context.Context

	cancel context.CancelFunc
	ends   atomic.Bool
}

func (c *endsWhenAsked) Err() error {
	if c.ends.Load() {
		c.cancel()
	}
	return c.Context.Err()
}

func TestSecureEndsWithTheSession(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		h := stale(t, srv, fault.Rule{Action: fault.HoldReply, Times: fault.Forever})
		time.AfterFunc(time.Second, func() {
			check(t, srv.Expire(h.Session()))
		})
		wantErr(t, "secure", h.Secure(t.Context()), framework.ErrSessionEnded)
		await(t, h.Lost(), "loss")
	})
}

// A clogged connection is one whose Close waits.
type clogged struct {
	net.Conn
	stuck *atomic.Bool
	free  chan struct{} // closed by the test
}

func (c clogged) Close() error {
	c.stuck.Store(true)
	<-c.free
	return c.Conn.Close()
}

// cloggedClient returns a client all of whose connections are clogged until free is called. stuck is set once
// one is to be closed.
func cloggedClient(t *testing.T, srv *zkserver.Server) (c *framework.Client, stuck *atomic.Bool, free func()) {
	t.Helper()
	stuck, freed := new(atomic.Bool), make(chan struct{})
	free = sync.OnceFunc(func() { close(freed) })
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := srv.Dial(ctx, network, addr)
		return clogged{conn, stuck, freed}, err
	}
	c = connect(t, srv.Addr(), framework.WithDialer(dial), framework.WithSessionTimeout(span))
	t.Cleanup(free)
	return c, stuck, free
}

// A caller of Err learns of the loss at once, even while the session's loop waits.
func TestErrNoticesTheDeadlineByItself(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, _, _ := cloggedClient(t, srv)
		h := mustHold(t, c)
		srv.Freeze()
		sleep(beat + stall) // now the loop closes the connection
		sleep(time.Until(h.Deadline()) - time.Nanosecond)
		wantErr(t, "lost early", h.Err(), nil)
		sleep(time.Nanosecond)
		wantErr(t, "the loss", h.Err(), framework.ErrSessionDeadline)
		await(t, h.Lost(), "loss")
		srv.Thaw()
	})
}

// All holders know of the loss before the first of them cleans up, however many there are.
func TestAllHoldersAreNotifiedBeforeAnyCleansUp(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial))
		const holds = 20
		var notified atomic.Int32 // holders may be notified concurrently
		var cleaned int
		for range holds {
			h := mustHold(t, c)
			h.OnLost(func(cause error) {
				wantErr(t, "the cause", cause, framework.ErrClosed)
				wantErr(t, "the hold", h.Err(), framework.ErrClosed)
				notified.Add(1)
			})
			h.AfterLost(func() {
				cleaned++
				wantEqual(t, "holders notified when one cleaned up", notified.Load(), holds)
				if h.Err() == nil {
					t.Error("it cleans up what is not lost")
				}
			})
		}
		released, late := mustHold(t, c), mustHold(t, c)
		released.OnLost(func(error) { t.Error("a hold that was released is told of a loss") })
		released.Release()
		must.OK(t, c.Close())
		late.OnLost(func(error) { t.Error("a hold that is lost already is told of it") })
		if n := notified.Load(); n != holds || cleaned != holds {
			t.Errorf("%d of %d were notified, and %d cleaned up", n, holds, cleaned)
		}
	})
}

// While the session ends and its holders are notified, a new hold is one of the next session.
func TestAHoldIsNeverOfASessionThatEnds(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, _, free := cloggedClient(t, srv)
		h := mustHold(t, c)
		next := make(chan *framework.SessionHold, 1)
		ended := make(chan error, 1)
		h.OnLost(func(error) {
			go func() {
				got, err := c.HoldSession(t.Context())
				check(t, err)
				next <- got
			}()
			go func() {
				ctx := within(t, time.Millisecond)
				_, err := c.HoldSession(ctx)
				ended <- err
			}()
			<-time.After(time.Second) // longer than a listener should take
		})
		srv.Freeze()
		sleep(beat + stall) // the loop closes the connection, and notifies no holder when it is lost
		sleep(time.Until(h.Deadline()))
		wantErr(t, "the loss", h.Err(), framework.ErrSessionDeadline)
		free()
		srv.Thaw()
		wantErr(t, "a hold for a millisecond", <-ended, context.DeadlineExceeded)
		if got := <-next; got == nil || got.Session() == h.Session() || got.Err() != nil {
			t.Errorf("a hold of a session that ends: %v", got)
		}
	})
}

// TestManyHoldsAreLostInTime cuts a client off. With many secured holds, it begins to notify their
// owners before the deadline, because that takes a time which virtual time does not show.
func TestManyHoldsAreLostInTime(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	for holds, early := range map[int]time.Duration{
		200:    0,
		5_000:  20 * time.Millisecond,
		16_000: timeout / 16,
	} {
		runSynctest(t, fmt.Sprint(holds), func(t *testing.T) {
			srv := zkserver.Run(t, append(zkenv.DrawVersion(t), zkserver.WithSessionTimeouts(timeout, timeout))...)
			proxy := newProxy(t, srv)
			c := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(proxy.Dial), framework.WithSessionTimeout(timeout)))(t)
			defer c.Close()
			must.OK(t, c.AwaitConnected(t.Context()))
			var mu sync.Mutex
			var lost []time.Time
			var hold *framework.SessionHold
			for range holds {
				hold = must.Get(c.HoldSession(t.Context()))(t)
				must.OK(t, hold.Secure(t.Context()))
				hold.OnLost(func(error) {
					mu.Lock()
					defer mu.Unlock()
					lost = append(lost, time.Now())
				})
			}
			proxy.Blackhole(zkproxy.Both)
			<-hold.Lost()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(lost) != holds {
				t.Fatalf("%d holds were notified, want %d", len(lost), holds)
			}
			// The session looks at its deadline once a millisecond at the most.
			if first := hold.Deadline().Sub(lost[0]); first > early || first <= early-time.Millisecond {
				t.Errorf("the first was notified %v before the deadline, want %v", first, early)
			}
		})
	}
}

// TestHeartbeatGoesOutFirst breaks the connection of a client with a hold, while many requests wait
// for the next one. The heartbeat that has to follow the reconnection is sent before all of them, so the deadline moves at once.
func TestHeartbeatGoesOutFirst(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, proxy := proxied(t, srv)
		h := mustHold(t, c)
		sleep(span / 4)
		before := h.Deadline()
		srv.Refuse()
		proxy.Cut()
		synctest.Wait()
		proxy.ResetRequests()
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() {
				check(t, last(c.Exists(t.Context(), "/")))
			})
		}
		synctest.Wait()
		srv.Accept()
		waiting.Wait()
		for _, request := range proxy.Requests() {
			if request.Op == fault.Connect {
				continue
			}
			wantEqual(t, "the first request, which has to be the heartbeat", request.Op, fault.Multi)
			break
		}
		if moved := h.Deadline(); !moved.After(before) || time.Until(moved) < span*15/16 {
			t.Errorf("the deadline is %v away", time.Until(moved))
		}
		must.OK(t, c.Close())
	})
}
