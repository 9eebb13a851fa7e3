package leader_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestALeadThatReturnsAtOnceIsCalledOnceASecond: it does not load the ensemble.
func TestALeadThatReturnsAtOnceIsCalledOnceASecond(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		e := must.Get(leader.New(env.Client(t), "/at-once"))(t)
		ctx := recipetest.Within(t, 3500*time.Millisecond)
		terms := 0
		err := e.Run(ctx, func(context.Context, *lease.Lease) error { terms++; return nil })
		if !errors.Is(err, context.DeadlineExceeded) || terms != 4 {
			t.Errorf("%d terms in 3.5 s, %v; want 4", terms, err)
		}
	}, zkenv.Only("the times are exact in virtual time", zkenv.Embedded))
}
