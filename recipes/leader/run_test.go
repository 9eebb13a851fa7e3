package leader_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// A runner is a Run on a goroutine of its own, whose lead waits for its term to end.
type runner struct {
	terms  chan *lease.Lease // unbuffered: lead waits until the test has taken it
	resign chan error        // what lead returns, unless its context ends first
	done   chan error
	cancel context.CancelFunc
}

func run(t testing.TB, e *leader.Election) *runner {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &runner{make(chan *lease.Lease), make(chan error), make(chan error, 1), cancel}
	t.Cleanup(cancel)
	go func() {
		r.done <- e.Run(ctx, func(ctx context.Context, term *lease.Lease) error {
			select {
			case r.terms <- term:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			select {
			case err := <-r.resign:
				return err
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	return r
}

// end has lead return err, and reports whether the term lasted until then.
func (r *runner) end(term *lease.Lease, err error) bool {
	select {
	case r.resign <- err:
		return true
	case <-term.Lost():
		return false
	}
}

// stop ends the run, and fails the test unless Run returns the end of its context.
func (r *runner) stop(t testing.TB) {
	t.Helper()
	r.cancel()
	recipetest.Fails(t, "Run", must.Receive(t, r.done, "the end of Run"), context.Canceled)
}

// calamities end a term, or keep a candidate from leading.
var calamities = map[string]func(t *testing.T, env *zkenv.Env, route *zkenv.Route, term *lease.Lease){
	"session expires": func(t *testing.T, _ *zkenv.Env, route *zkenv.Route, _ *lease.Lease) { route.Expire(t) },
	"session expires twice": func(t *testing.T, env *zkenv.Env, route *zkenv.Route, _ *lease.Lease) {
		route.Expire(t)
		env.Quiesce()
		if len(route.Sessions()) > 0 {
			route.Expire(t)
		}
	},
	"znode is deleted": func(t *testing.T, env *zkenv.Env, _ *zkenv.Route, term *lease.Lease) {
		if err := env.Client(t).Delete(t.Context(), term.Node()); err != nil {
			t.Error(err)
		}
	},
	"leader is revoked twice": func(t *testing.T, env *zkenv.Env, _ *zkenv.Route, term *lease.Lease) {
		c := env.Client(t)
		for range 2 {
			if err := lock.Revoke(t.Context(), c, term.Node()); err != nil {
				t.Error(err)
			}
		}
	},
	"outage lasts beyond the deadline": func(t *testing.T, _ *zkenv.Env, route *zkenv.Route, term *lease.Lease) {
		route.Refuse()
		route.Cut()
		must.Receive(t, term.Lost(), "the loss of the term")
		route.Heal()
	},
}

// Run leads again, in a later term, whatever ends one: CURATOR-15, -16, -73, -104, -518.
func TestRunLeadsAgainAfterEveryFault(t *testing.T) {
	t.Parallel()
	for name, harm := range calamities {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			route, path := env.Route(t), recipetest.Path(t)
			c := route.Client(t, framework.WithSessionTimeout(sessionAtStake))
			r := run(t, newElection(t, c, path, recipes.WithRevocation(func(term *lease.Lease) {
				_ = term.Release(context.WithoutCancel(t.Context())) // ends lead's context
			})))
			first := must.Receive(t, r.terms, "the first term")
			harm(t, env, route, first)
			second := must.Receive(t, r.terms, "the second term")
			if first.Err() == nil || second.Fence() <= first.Fence() {
				t.Errorf("term %d (%v) after term %d (%v): must grow", second.Fence(), second.Err(), first.Fence(), first.Err())
			}
			r.stop(t)
			recipetest.AwaitChildren(t, env.Client(t), path, 0)
		})
	}
	for _, action := range []fault.Action{fault.CutBefore, fault.DropReply} {
		recipetest.Subtest(t, fmt.Sprintf("%v of each request, without retries", action), func(t *testing.T, env *zkenv.Env) {
			leadsDespite(t, env, action)
		})
	}
}

// leadsDespite has the action meet each request of a campaign and a resignation, of a client that
// retries nothing: what fails reaches Run.
func leadsDespite(t *testing.T, env *zkenv.Env, action fault.Action) {
	t.Helper()
	met := 0
	for n := range 8 {
		route, path := env.Route(t), recipetest.Path(t)
		c := route.Client(t, framework.WithRetry(retry.Never()))
		rule := route.Rules().Add(fault.Rule{Action: action, Skip: n})
		r := run(t, newElection(t, c, path))
		before := int64(0)
		for range 2 {
			term := must.Receive(t, r.terms, "a term")
			if term.Fence() <= before {
				t.Errorf("%v of request %d: term %d after term %d", action, n, term.Fence(), before)
			}
			before = term.Fence()
			r.end(term, nil)
		}
		r.stop(t)
		met += rule.Hits()
		route.Rules().Clear()
		recipetest.AwaitChildren(t, env.Client(t), path, 0)
	}
	if met < 6 {
		t.Errorf("%v met %d requests, want 6 at the least", action, met)
	}
}

// TestRunOutlivesARefusedCredential: the servers refuse the client's credential for a while.
func TestRunOutlivesARefusedCredential(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		c := route.Client(t, framework.WithSessionTimeout(sessionAtStake), framework.WithAuth("digest", []byte("user:password")))
		r := run(t, newElection(t, c, path))
		first := must.Receive(t, r.terms, "the first term")
		refused := route.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.Refuse, Code: fault.AuthFailed, Times: fault.Forever})
		route.Cut()
		must.Receive(t, first.Lost(), "the loss of the term")
		zktest.Eventually(t, recipetest.Generous, "AuthFailed", func() bool { return c.State() == framework.AuthFailed })
		env.Quiesce() // the campaign that follows is refused
		refused.Remove()
		if second := must.Receive(t, r.terms, "the second term"); second.Fence() <= first.Fence() {
			t.Errorf("term %d after term %d: must grow", second.Fence(), first.Fence())
		}
		r.stop(t)
	})
}

func TestRunEndsOnlyByContextOrLead(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		r := run(t, newElection(t, c, path))
		must.Receive(t, r.terms, "the first term")
		r.resign <- nil
		must.Receive(t, r.terms, "the second term: lead returned nil")
		r.resign <- wrong
		if err := must.Receive(t, r.done, "the end of Run"); !errors.Is(err, wrong) || err.Error() != wrong.Error() {
			t.Errorf("Run: %v, want lead's error as it is", err)
		}
		recipetest.AwaitChildren(t, c, path, 0)

		r = run(t, newElection(t, c, path))
		must.Receive(t, r.terms, "a term")
		r.stop(t)
		recipetest.AwaitChildren(t, c, path, 0)

		vacate := mustLead(t, newElection(t, c, path))
		r = run(t, newElection(t, c, path))
		recipetest.AwaitChildren(t, c, path, 2)
		r.stop(t) // while it waits
		recipetest.AwaitChildren(t, c, path, 1)
		mustResign(t, vacate)

		closing := env.Client(t)
		r = run(t, newElection(t, closing, path))
		must.Receive(t, r.terms, "a term")
		must.OK(t, closing.Close())
		recipetest.Fails(t, "Run whose client was closed", must.Receive(t, r.done, "the end of Run"), framework.ErrClosed)
	})
}

// An error that says nothing of the context's end does not end Run if it comes after the loss, and is logged.
// If Run's own context has ended, it is joined to that end.
func TestAnErrorOfLeadAfterItsTermIsLogged(t *testing.T) {
	t.Parallel()
	wrong := errors.New("rpc error: code = Canceled")
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		core, logs := observer.New(zapcore.WarnLevel)
		route := env.Route(t)
		c := route.Client(t, framework.WithLogger(zap.New(core)))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		terms := 0
		err := newElection(t, c, recipetest.Path(t)).Run(ctx, func(ctx context.Context, _ *lease.Lease) error {
			if terms++; terms == 1 {
				route.Expire(t)
			} else {
				cancel()
			}
			<-ctx.Done()
			return wrong
		})
		if terms != 2 || !errors.Is(err, wrong) || !errors.Is(err, context.Canceled) {
			t.Errorf("Run after %d terms: %v, want the end of its context and lead's error after 2", terms, err)
		}
		const line = "the function returned an error after its lease was lost"
		if got := logs.FilterMessage(line).FilterField(zap.Error(wrong)).Len(); got != 1 {
			t.Errorf("%d lines %q, want 1", got, line)
		}
	})
}

func TestRunResignsWhenLeadPanics(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		func() {
			defer func() {
				if p := recover(); p != "lead" {
					t.Errorf("recovered %v, want lead's panic", p)
				}
			}()
			_ = newElection(t, c, path).Run(t.Context(), func(context.Context, *lease.Lease) error { panic("lead") })
		}()
		if left := recipetest.Children(t, c, path); len(left) > 0 {
			t.Errorf("%v after the panic, want no candidate", left)
		}
	})
}

// While another candidate leads, a Run that stepped down is behind it.
func TestRunStepsBehindAllOthers(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		observer, path := env.Client(t), recipetest.Path(t)
		var runners []*runner
		for n := range 3 {
			runners = append(runners, run(t, newElection(t, env.Client(t), path)))
			recipetest.AwaitChildren(t, observer, path, n+1)
		}
		for range 2 {
			for i, r := range runners {
				term := must.Receive(t, r.terms, "the next term")
				for j, other := range runners {
					select {
					case second := <-other.terms:
						t.Errorf("term %d of candidate %d beside term %d of candidate %d", second.Fence(), j, term.Fence(), i)
					default:
					}
				}
				r.resign <- nil
				zktest.Eventually(t, recipetest.Generous, "the candidate is behind the others", func() bool {
					names := recipetest.Children(t, observer, path)
					return len(names) == 3 && !slices.Contains(names, term.Node()[len(path)+1:])
				})
			}
		}
		for _, r := range runners {
			r.cancel()
		}
		for _, r := range runners {
			must.Receive(t, r.done, "the end of Run")
		}
	})
}

// A term that lead has ended in time is not lost, and neither Run nor its caller waits for an outage
// to end.
func TestRunReportsTheWork(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		for _, frozen := range []bool{false, true} {
			route := env.Route(t)
			c := route.Client(t, framework.WithSessionTimeout(sessionAtStake))
			var returned time.Time
			err := newElection(t, c, recipetest.Path(t)).Run(t.Context(), func(context.Context, *lease.Lease) error {
				if frozen {
					env.Members()[0].Freeze(t)
				} else {
					route.Refuse()
					route.Cut()
				}
				returned = time.Now()
				return wrong
			})
			if err != wrong { //nolint:errorlint // identity is the promise
				t.Errorf("Run: %v, want lead's error itself", err)
			}
			if late := time.Since(returned); late > time.Second {
				t.Errorf("Run returned %v after lead", late)
			}
			route.Heal()
			env.Members()[0].Thaw(t)
		}
	}, zkenv.Breakable(), zkenv.Only("the times are exact in virtual time", zkenv.Embedded))
}

// outage is how long the campaigns of TestRunWaitsBetweenCampaignsThatFail fail; in virtual time it costs
// nothing.
const outage = time.Minute

// Campaigns that fail at once follow one another with pauses.
func TestRunWaitsBetweenCampaignsThatFail(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		c := route.Client(t, framework.WithRetry(retry.Never()), framework.WithSessionTimeout(sessionAtStake))
		rule := route.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/**", Action: fault.CutBefore, Times: fault.Forever})
		r := run(t, newElection(t, c, path))
		<-time.After(outage)
		if n := rule.Hits(); n < 10 || n > 200 {
			t.Errorf("%d campaigns in %v, want from 10 to 200", n, outage)
		}
		route.Rules().Clear()
		must.Receive(t, r.terms, "a term once the outage is over")
		r.stop(t)
	}, zkenv.Only("time is virtual", zkenv.Embedded))
}

// A lead that goes on after its context has ended is logged, and keeps the term.
func TestRunWarnsOfALeadThatDoesNotReturn(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		core, logs := observer.New(zap.WarnLevel)
		c := env.Client(t, framework.WithLogger(zap.New(core)))
		ctx, cancel := context.WithCancel(t.Context())
		linger, leads, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			done <- newElection(t, c, recipetest.Path(t)).Run(ctx, func(context.Context, *lease.Lease) error {
				close(leads)
				<-linger
				return nil
			})
		}()
		must.Receive(t, leads, "the term")
		cancel()
		warnings := func() int { return logs.FilterMessageSnippet("the function has not returned").Len() }
		zktest.Never(t, 9*time.Second, "a warning", func() bool { return warnings() > 0 })
		zktest.Eventually(t, recipetest.Generous, "a warning", func() bool { return warnings() == 1 })
		close(linger)
		if err := must.Receive(t, done, "the end of Run"); !errors.Is(err, context.Canceled) || warnings() != 1 {
			t.Errorf("Run: %v, %d warnings; want context.Canceled and one", err, warnings())
		}
	}, zkenv.Only("the times are exact in virtual time", zkenv.Embedded))
}

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
