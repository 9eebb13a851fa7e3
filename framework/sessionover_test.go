package framework_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestAwaitSessionEnd: the client abandons a session, which the ensemble has for a while longer.
func TestAwaitSessionEnd(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, e *zkenv.Env) {
		route, other, path := e.Route(t), e.Client(t), fresh(t)
		c := route.Client(t)
		must.Get(c.Create(t.Context(), path, nil, framework.Ephemeral()))(t)
		former := c.Session().ID
		route.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
		early := make(chan error, 1)
		go func() { early <- c.AwaitSessionEnd(t.Context(), former) }() // it is the present one
		route.Cut()
		zktest.Eventually(t, patience, "the next session", func() bool {
			return c.State() == framework.Connected && c.Session().ID != former
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		wantErr(t, "AwaitSessionEnd", c.AwaitSessionEnd(ctx, former), context.DeadlineExceeded)
		must.OK(t, c.AwaitSessionEnd(t.Context(), former))
		must.OK(t, must.Receive(t, early, "the session's end"))
		must.OK(t, other.Sync(t.Context(), path))
		if _, exists, err := other.Exists(t.Context(), path); exists || err != nil {
			t.Errorf("the session's znode exists: %v, %v", exists, err)
		}
		must.OK(t, c.AwaitSessionEnd(t.Context(), former+12345))
		present := c.Session().ID
		must.OK(t, c.Close())
		wantErr(t, "AwaitSessionEnd after Close", c.AwaitSessionEnd(t.Context(), present), framework.ErrClosed)
	})
}
