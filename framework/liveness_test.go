package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/freeport"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// operations are all calls that take a context, by what they are. Ready does not wait for a connection.
func operations(c *framework.Client) map[string]func(context.Context) error {
	calls := map[string]func(context.Context) error{
		"AwaitConnected": c.AwaitConnected,
		"HoldSession":    func(ctx context.Context) error { return holdAndSecure(ctx, c) },
		"Create with TTL": func(ctx context.Context) error {
			return last(c.Create(ctx, "/a", nil, framework.TTL(time.Second)))
		},
		"Create protected with parents": func(ctx context.Context) error {
			return last(c.Create(ctx, "/a/b/c", nil, framework.Ephemeral(), framework.Protected(), framework.WithParents()))
		},
	}
	for name, call := range requestKinds() {
		if calls[name] == nil && name != "Ready" {
			calls[name] = func(ctx context.Context) error { return call(ctx, c) }
		}
	}
	return calls
}

// holdAndSecure needs an answer of a server, even where the deadline is ahead.
func holdAndSecure(ctx context.Context, c *framework.Client) error {
	h, err := c.HoldSession(ctx)
	if err != nil {
		return err
	}
	defer h.Release()
	if err := h.Secure(ctx); err != nil {
		return err
	}
	return c.Sync(ctx, "/")
}

// connectedOnly are the operations that are done at once while the client is
// still Connected.
var connectedOnly = map[string]bool{"AwaitConnected": true}

func TestCallsAreBoundedByTheirContext(t *testing.T) {
	frozen := zktest.Run(t)
	hanging := zkproxy.Run(t, frozen.Addr())
	hanging.Hang()

	for _, tc := range []struct {
		name    string
		servers string
		up      bool // connected before the trouble begins
		trouble func() error
	}{
		{"no server listens", freeport.Addr(t), false, nil},
		{"the handshake is not answered", hanging.Addr(), false, nil},
		{"the server is frozen", frozen.Addr(), true, frozen.Freeze},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			c := newClient(t, tc.servers, framework.WithSessionTimeout(20*time.Second), framework.WithRetry(retry.Forever(time.Millisecond)))
			if tc.up {
				must.OK(t, c.AwaitConnected(within(t, patience)))
			}
			if tc.trouble != nil {
				must.OK(t, tc.trouble())
			}
			var wg sync.WaitGroup
			for name, call := range operations(c) {
				if !tc.up || !connectedOnly[name] {
					wg.Go(func() { checkBounded(t, name, call) })
				}
			}
			wg.Wait()
			start := time.Now()
			var unclosed error // no server can end the session
			if tc.up {
				unclosed = framework.ErrUnknownOutcome
			}
			wantErr(t, "Close", c.Close(), unclosed)
			wantWithin(t, start, 4*time.Second) // for a busy machine: TestCloseTakesASecondAtTheMost is exact
			hanging.Cut()                       // what its connections leave is not the client's
			check(t, goleak.Find(before, zktest.IgnoreServers()))
		})
	}
	must.OK(t, frozen.Thaw())
}

func checkBounded(t *testing.T, name string, call func(context.Context) error) {
	t.Helper()
	ctx := within(t, 200*time.Millisecond)
	start := time.Now()
	wantErr(t, name, call(ctx), context.DeadlineExceeded)
	wantWithin(t, start, patience/2)
	given, abandon := context.WithCancelCause(t.Context())
	timer := time.AfterFunc(20*time.Millisecond, func() { abandon(errAbandoned) })
	defer timer.Stop()
	wantErr(t, name, call(given), context.Canceled, errAbandoned)
}

// errAbandoned is a cause of a context's end that differs from its error.
var errAbandoned = errors.New("gave up")

func TestCallsUnderADeadContextFailAtOnce(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range operations(c) {
		if !connectedOnly[name] {
			wantErr(t, name, call(ctx), context.Canceled)
		}
	}
}

func TestCallsFailOnceTheClientIsClosed(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr())
	must.OK(t, c.Close())
	for name, call := range operations(c) {
		wantErr(t, name, call(t.Context()), framework.ErrClosed)
	}
}

// A call fails as its context ended. An error of other work, which is the context's cause, is no answer to it.
func TestCausesAreNoAnswers(t *testing.T) {
	t.Parallel()
	srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
	c := connect(t, srv.Addr(), framework.WithDialer(srv.Dial))
	for _, other := range []error{
		framework.ErrNoNode, framework.ErrNodeExists, framework.ErrNotConnected, framework.ErrUnknownOutcome, framework.ErrClosed,
		framework.ErrSessionExpired, context.DeadlineExceeded,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(fmt.Errorf("other work: %w", other))
		_, _, err := c.Get(ctx, "/")
		if !errors.Is(err, context.Canceled) || errors.Is(err, other) || framework.Retryable(err) || strings.Count(fmt.Sprint(err), "other work") != 1 {
			t.Errorf("with the cause %v: %v; want the context's end, with the cause in its text once", other, err)
		}
	}
}
