package framework_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// A write whose first attempt has an unknown outcome says so, also if no server can be reached for a
// further attempt.
func TestAWriteIsOfUnknownOutcome_if_only_its_first_attempt_was_sent(t *testing.T) {
	const limit = 3 * time.Second
	writes := map[string]struct {
		op    fault.Op
		write func(ctx context.Context, c *framework.Client) error
	}{
		"set": {fault.SetData, func(ctx context.Context, c *framework.Client) error {
			_, err := c.Set(ctx, "/node", []byte("x"), 0)
			return err
		}},
		"delete": {fault.Delete, func(ctx context.Context, c *framework.Client) error { return c.Delete(ctx, "/node") }},
		"create": {fault.Create, func(ctx context.Context, c *framework.Client) error {
			_, err := c.Create(ctx, "/other", nil)
			return err
		}},
		"idempotent create": {fault.Create, func(ctx context.Context, c *framework.Client) error {
			_, err := c.Create(ctx, "/other", nil, framework.Idempotent())
			return err
		}},
	}
	ends := map[string]struct {
		policy retry.Policy
		end    func(c *framework.Client, cancel func())
		want   error
	}{
		"ctx ends":            {retry.Forever(time.Second / 8), func(_ *framework.Client, cancel func()) { cancel() }, context.Canceled},
		"ctx ends in a pause": {retry.Forever(time.Minute), func(_ *framework.Client, cancel func()) { cancel() }, context.Canceled},
		"the policy ends":     {retry.Times(3, time.Second/8), func(*framework.Client, func()) {}, framework.ErrNotConnected},
		"the client is closed": {retry.Forever(time.Second / 8), func(c *framework.Client, _ func()) {
			_ = c.Close() // it can't end its session
		}, framework.ErrClosed},
	}
	for write, w := range writes {
		for end, e := range ends {
			t.Run(write+"/"+end, func(t *testing.T) {
				virtually(t, func(t *testing.T, srv *zkserver.Server) {
					c := virtual(t, srv, framework.WithRetry(e.policy))
					mustCreate(t, c, "/node", "")
					srv.Rules().Add(fault.Rule{Op: w.op, Action: fault.DropReply})
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					done := make(chan error, 1)
					srv.Refuse()
					go func() { done <- w.write(ctx, c) }() // ends with the call
					<-time.After(limit)
					e.end(c, cancel)
					wantErr(t, write, <-done, e.want, framework.ErrUnknownOutcome)
					srv.Accept()
				})
			})
		}
	}
}
