package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
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

// Calls end with their context, which may have ended before, and with the client, whatever the servers do.
func TestCallsAreBoundedByTheirContext(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		up      bool // connected before the trouble begins
		trouble func(*zkserver.Server)
	}{
		"no server listens":             {false, func(srv *zkserver.Server) { srv.Refuse() }},
		"the handshake is not answered": {false, hold(fault.Connect)},
		"the server is frozen":          {true, func(srv *zkserver.Server) { srv.Freeze() }},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(20*time.Second), framework.WithRetry(retry.Forever(time.Millisecond)))
			var unclosed error // no server can end the session
			if tc.up {
				must.OK(t, c.AwaitConnected(t.Context()))
				unclosed = framework.ErrUnknownOutcome
				wantDead(t, c)
			}
			tc.trouble(srv)
			var wg sync.WaitGroup
			for name, call := range operations(c) {
				if !tc.up || !connectedOnly[name] {
					wg.Go(func() { checkBounded(t, name, call) })
				}
			}
			wg.Wait()
			closesInTime(t, c, unclosed)
			for name, call := range operations(c) {
				wantErr(t, name, call(t.Context()), framework.ErrClosed)
			}
			srv.Rules().Clear()
			srv.Thaw()
		})
	}
}

// wantDead fails the test unless all calls fail whose context has ended before. They send nothing, so their outcome is known.
func wantDead(t *testing.T, c *framework.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range requestKinds() {
		err := call(ctx, c)
		wantErr(t, name, err, context.Canceled)
		if errors.Is(err, framework.ErrUnknownOutcome) {
			t.Errorf("%s: %v, want no unknown outcome", name, err)
		}
	}
}

func checkBounded(t *testing.T, name string, call func(context.Context) error) {
	t.Helper()
	const limit = 200 * time.Millisecond
	start := time.Now()
	wantErr(t, name, call(within(t, limit)), context.DeadlineExceeded)
	wantWithin(t, start, limit)
	given, abandon := context.WithCancelCause(t.Context())
	timer := time.AfterFunc(limit, func() { abandon(errAbandoned) })
	defer timer.Stop()
	wantErr(t, name, call(given), context.Canceled, errAbandoned)
	wantWithin(t, start, 2*limit)
}

// errAbandoned is a cause of a context's end that differs from its error.
var errAbandoned = errors.New("gave up")

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
