package barrier_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

func newBarrier(t testing.TB, c *framework.Client, path string) *barrier.Barrier {
	t.Helper()
	return must.Get(barrier.New(c, path))(t)
}

// waitLater calls Wait on a goroutine of its own.
func waitLater(ctx context.Context, b *barrier.Barrier) <-chan error {
	done := make(chan error, 1)
	go func() { done <- b.Wait(ctx) }()
	return done
}

func TestBarrier(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		setter, waiter := newBarrier(t, env.Client(t), path), newBarrier(t, route.Client(t), path)
		for range 2 {
			must.OK(t, setter.Set(t.Context()))
		}
		must.OK(t, waiter.Set(t.Context())) // its server has seen it
		done := waitLater(t.Context(), waiter)
		env.Quiesce()
		if len(done) > 0 {
			t.Fatalf("Wait returned %v while the barrier is set", <-done)
		}
		route.Cut() // an outage ends no wait
		env.Quiesce()
		for range 2 {
			must.OK(t, setter.Remove(t.Context()))
		}
		if err := must.Receive(t, done, "the end of Wait"); err != nil || setter.Path() != path {
			t.Errorf("Wait: %v", err)
		}
		if err := waiter.Wait(t.Context()); err != nil {
			t.Errorf("Wait without a barrier: %v", err)
		}
	})
}

// TestAWaitLeavesNoWatch: CURATOR-654. After the event nothing is asked again.
func TestAWaitLeavesNoWatch(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		setter, waiter := newBarrier(t, env.Client(t), path), newBarrier(t, route.Client(t), path)
		route.ResetRequests()
		must.OK(t, waiter.Wait(t.Context()))
		recipetest.MustHaveSent(t, "Wait without a barrier, which leaves no watch", route, path, fault.GetData)
		must.OK(t, waiter.Set(t.Context()))
		route.ResetRequests()
		done := waitLater(t.Context(), waiter)
		env.Quiesce()
		must.OK(t, setter.Remove(t.Context()))
		must.OK(t, must.Receive(t, done, "the end of Wait"))
		recipetest.MustHaveSent(t, "Wait for a removal", route, path, fault.GetData)
	}, zkenv.Only("the server has no part in it", zkenv.Embedded, zkenv.Standalone))
}

func TestWaitObeysItsContext(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		b := newBarrier(t, route.Client(t), path)
		must.OK(t, b.Set(t.Context()))
		for _, away := range []bool{false, true} {
			if away {
				route.Refuse()
				route.Cut()
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			done := waitLater(ctx, b)
			env.Quiesce()
			cancel(errStop)
			recipetest.Fails(t, "Wait", must.Receive(t, done, "the end of Wait"), context.Canceled, errStop)
		}
		route.Heal()
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

var errStop = errors.New("stop")

func TestLeaveTakesItsOwnLeaseAlone(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		d, other := newDouble(t, c, "/one", 1), newDouble(t, c, "/other", 1)
		l := must.Get(other.Enter(t.Context()))(t)
		recipetest.Says(t, d.Leave(t.Context(), nil), "lease: must not be nil")
		recipetest.Says(t, d.Leave(t.Context(), l), "lease: must be one of this double barrier")
		if err := other.Leave(t.Context(), l); err != nil || other.Path() != "/other" {
			t.Error(err)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

// A wait that ends in an outage says why there is no connection.
func TestAWaitThatEndsInAnOutageSaysSo(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, server *zkserver.Server) {
		c, other := recipetest.ClientOf(t, server), recipetest.ClientOf(t, server)
		b := must.Get(barrier.New(c, "/barrier"))(t)
		must.OK(t, b.Set(t.Context()))
		d := newDouble(t, c, "/double", 2)
		entering := recipetest.Later(t.Context(), newDouble(t, other, "/double", 2).Enter)
		place := must.Get(d.Enter(t.Context()))(t)
		recipetest.Granted(t, entering)
		alone := newDouble(t, c, "/alone", 2)

		ctx := recipetest.Within(t, 5*time.Second)
		ends := make(map[string]<-chan error)
		for name, wait := range map[string]func() error{
			"Wait":  func() error { return b.Wait(ctx) },
			"Leave": func() error { return d.Leave(ctx, place) },
			"Enter": func() error { _, err := alone.Enter(ctx); return err },
		} {
			end := make(chan error, 1)
			go func() { end <- wait() }()
			ends[name] = end
		}
		synctest.Wait()
		server.Refuse()
		server.Cut()
		for name, end := range ends {
			if err := <-end; !errors.Is(err, context.DeadlineExceeded) || strings.Count(err.Error(), "connection refused") != 1 {
				t.Errorf("%s: %v, want one that says why there is no connection", name, err)
			}
		}
	})
}

// A caller has left, and the reply to its read is late. So is the event of a removal that came before the barrier was
// set again: it ends no later Wait.
func TestWaitIsNotEndedByAnEarlierRemoval(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		setter, waiter := newBarrier(t, env.Client(t), path), newBarrier(t, route.Client(t), path)
		must.OK(t, waiter.Set(t.Context()))
		late := route.Rules().Add(fault.Rule{Op: fault.GetData, Path: path, Action: fault.HoldReply})
		ctx, leave := context.WithCancel(t.Context())
		former := waitLater(ctx, waiter)
		must.Receive(t, late.Hit(), "the read of the former Wait")
		leave()
		must.Receive(t, former, "the end of the former Wait")
		must.OK(t, setter.Remove(t.Context()))
		must.OK(t, setter.Set(t.Context()))
		done := waitLater(t.Context(), waiter)
		env.Quiesce()
		late.Release()
		select {
		case err := <-done:
			t.Fatalf("Wait returned %v while the barrier is set", err)
		case <-time.After(time.Second): // virtual
		}
		must.OK(t, setter.Remove(t.Context()))
		must.OK(t, must.Receive(t, done, "the end of Wait"))
	}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
}
