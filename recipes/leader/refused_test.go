package leader_test

import (
	"context"
	"errors"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestCandidatesThatMayNotBeListed: Campaign and Run return the reason, and leave no candidate. Observe
// shows no leader while it may not read, and the leader when it may. Campaign then leads.
func TestCandidatesThatMayNotBeListed(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, c, other := recipetest.Path(t), env.Client(t), env.Client(t)
		must.Get(other.Create(t.Context(), path, nil, framework.WithParents()))(t)
		recipetest.Permit(t, other, path, acl.All&^acl.Read)
		e := newElection(t, c, path)
		ctx, cancel := context.WithTimeout(t.Context(), recipetest.Generous)
		defer cancel()
		_, campaign := e.Campaign(ctx)
		run := e.Run(ctx, func(context.Context, *lease.Lease) error {
			t.Error("it leads")
			return nil
		})
		for what, err := range map[string]error{"Campaign": campaign, "Run": run} {
			if !errors.Is(err, framework.ErrNoAuth) || errors.Is(err, framework.ErrClosed) || ctx.Err() != nil {
				t.Errorf("%s: %v, want ErrNoAuth", what, err)
			}
		}
		shown := make(chan bool, 100)
		observing := make(chan struct{})
		go func() { // ends with ctx
			defer close(observing)
			for _, known := range e.Observe(ctx) {
				shown <- known
			}
		}()
		if must.Receive(t, shown, "what Observe shows") {
			t.Error("Observe shows a leader that it may not read")
		}
		recipetest.Permit(t, other, path, acl.All)
		recipetest.AwaitChildren(t, other, path, 0)
		term := mustLead(t, e)
		zktest.Eventually(t, recipetest.Generous, "the leader", func() bool { return len(shown) > 0 && <-shown })
		mustResign(t, term)
		cancel()
		must.Receive(t, observing, "the end of Observe")
	}, zkenv.Only("the refusal is every server's", zkenv.Embedded, zkenv.Standalone))
}
