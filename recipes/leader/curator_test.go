package leader_test

import (
	"context"
	"errors"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/zkenv"
)

// Curator's own tests of LeaderLatch and LeaderSelector, as far as no other test of this package has
// the same meaning: lab/interop/curator-tests.md.

// testNoServerAtStart: candidates that began before there is a server lead when there is one.
func TestCampaignBeforeThereIsAServer(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		c := route.Client(t)
		route.Refuse()
		route.Cut()
		done := recipetest.Later(t.Context(), newElection(t, c, path).Campaign)
		r := run(t, newElection(t, c, path))
		env.Quiesce()
		route.Heal()
		select {
		case got := <-done:
			must.OK(t, got.Err)
			mustResign(t, got.Lease)
			must.Receive(t, r.terms, "the term of Run")
		case <-r.terms:
			r.resign <- nil
			mustResign(t, must.Receive(t, done, "the other term").Lease)
		}
		r.stop(t)
	})
}

// testSessionErrorPolicy, testErrorPolicies: a policy decides whether an outage ends a term.
func TestLossPolicyOfATerm(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		c := route.Client(t)
		patient := mustLead(t, newElection(t, c, path+"-patient"))
		hasty := mustLead(t, newElection(t, c, path, recipes.WithLossPolicy(lease.OnSuspend)))
		route.Cut()
		must.Receive(t, hasty.Lost(), "the loss by suspension")
		recipetest.Fails(t, "term that an outage ended", hasty.Err(), lease.ErrSuspended)
		mustResign(t, mustLead(t, newElection(t, env.Client(t), path)))
		if err := patient.Err(); err != nil {
			t.Errorf("term that outlives an outage: %v", err)
		}
		mustResign(t, patient)
	})
}

// CURATOR-724, testSessionInterruptionDoNotCauseBrainSplit: an operator deletes the directory with the
// leader and a waiting candidate. The leader loses its term, and both are candidates again.
func TestRunOutlivesTheElectionsDirectory(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		operator, path := env.Client(t), recipetest.Path(t)
		first, second := run(t, newElection(t, env.Client(t), path)), run(t, newElection(t, env.Client(t), path))
		var term *lease.Lease
		select {
		case term = <-first.terms:
		case term = <-second.terms:
		}
		recipetest.AwaitChildren(t, operator, path, 2)
		env.Quiesce()
		if err := operator.DeleteTree(t.Context(), path); err != nil && !errors.Is(err, framework.ErrNotEmpty) {
			t.Fatal(err)
		}
		must.Receive(t, term.Lost(), "the loss of the term")
		for led := map[*runner]bool{}; len(led) < 2; { // the deletion may meet another term
			r := first
			select {
			case term = <-first.terms:
			case term = <-second.terms:
				r = second
			}
			if r.end(term, nil) {
				led[r] = true
			}
		}
		first.cancel()
		second.cancel()
		for _, r := range []*runner{first, second} {
			recipetest.Fails(t, "Run", must.Receive(t, r.done, "the end of Run"), context.Canceled)
		}
		recipetest.AwaitChildren(t, operator, path, 0)
	})
}

// LeaderSelector: NoAuth ends the election for a candidate that may not take part, with the error.
func TestRunEndsWhereItIsNotPermitted(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		must.Get(c.Create(t.Context(), path, nil, framework.WithParents()))(t)
		path += "/election" // created with its ACL: a leader may check a changed one late
		must.Get(c.Create(t.Context(), path, nil, framework.WithACL(acl.ReadOnly()...)))(t)
		err := newElection(t, c, path).Run(t.Context(), func(context.Context, *lease.Lease) error {
			t.Error("it leads")
			return nil
		})
		recipetest.Fails(t, "Run", err, framework.ErrNoAuth)
	})
}
