package counter_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestAddWithEveryReplyLost: an addition whose reply is lost is applied once, or its error says that
// this is unknown. Curator counts 1, adds 1, stores 3 and returns 3.
func TestAddWithEveryReplyLost(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path := recipetest.Path(t)
		route := env.Route(t)
		n := newCounter(t, route.Client(t), path)
		var sum, unknown int64
		for i := range int64(8) {
			op := fault.SetData
			if i == 0 {
				op = fault.Create
			}
			route.Rules().Add(fault.Rule{Op: op, Path: path, Action: fault.DropReply})
			v, err := n.Add(t.Context(), 1)
			switch {
			case errors.Is(err, framework.ErrUnknownOutcome):
				unknown++
			case err != nil:
				t.Fatalf("addition %d: %v", i, err)
			default:
				sum++
				if v < sum || v > sum+unknown {
					t.Errorf("addition %d returned %d, with %d known and %d unknown ones", i, v, sum, unknown)
				}
			}
		}
		v, err := newCounter(t, env.Client(t), path).Add(t.Context(), 0)
		if err != nil || v < sum || v > sum+unknown {
			t.Errorf("number %d, %v; want %d, or up to %d more", v, err, sum, unknown)
		}
		if unknown == 0 {
			t.Error("no outcome was unknown: no reply was lost")
		}
	})
}

// TestChangesWithTheirReplyLost: each change of a number says that its outcome is unknown. Curator's compareAndSet
// returns false, and has set.
func TestChangesWithTheirReplyLost(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		n := newCounter(t, recipetest.ClientOf(t, srv), "/number")
		mustAdd(t, n, 1)
		for name, change := range map[string]func() (any, error){
			"CompareAndSet": func() (any, error) { return n.CompareAndSet(t.Context(), 1, 2) },
			"Take":          func() (any, error) { return n.Take(t.Context(), 1) },
			"Set":           func() (any, error) { return nil, n.Set(t.Context(), 2) },
		} {
			must.OK(t, n.Set(t.Context(), 1))
			srv.Rules().Add(fault.Rule{Op: fault.SetData, Path: "/number", Action: fault.DropReply})
			if got, err := change(); !errors.Is(err, framework.ErrUnknownOutcome) {
				t.Errorf("%s: %v, %v; want ErrUnknownOutcome", name, got, err)
			}
			mustBe(t, n, 2)
		}
	})
}

// TestARequestThatWasNotAppliedIsMadeAgain cuts the connection before each write: it is made again.
func TestARequestThatWasNotAppliedIsMadeAgain(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		n := newCounter(t, route.Client(t), path)
		for i := range int64(4) {
			route.Rules().Add(fault.Rule{Path: path, Action: fault.CutBefore})
			if v := mustAdd(t, n, 1); v != i+1 {
				t.Errorf("addition %d returned %d", i, v)
			}
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

// TestConcurrentAddsOfAClientAreOneWrite holds the reply to a first addition. All that come
// meanwhile are one write, and each has its own result.
func TestConcurrentAddsOfAClientAreOneWrite(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const calls = 16
		route, path := env.Route(t), recipetest.Path(t)
		c := route.Client(t)
		n, same := newCounter(t, c, path), newCounter(t, c, path)
		mustAdd(t, n, 1)
		held := route.Rules().Add(fault.Rule{Op: fault.SetData, Path: path, Action: fault.HoldReply})
		route.ResetRequests()
		results := make(chan int64, calls+1)
		var wg sync.WaitGroup
		add := func(n *counter.Counter) {
			wg.Go(func() { results <- mustAdd(t, n, 1) })
		}
		add(n)
		must.Receive(t, held.Hit(), "the first write")
		for range calls / 2 {
			add(n)
			add(same)
		}
		env.Quiesce()
		held.Release()
		wg.Wait()
		close(results)
		var all []int64
		for v := range results {
			all = append(all, v)
		}
		slices.Sort(all)
		for i, v := range all {
			if v != int64(i)+2 {
				t.Errorf("results %v, want each of 2 to %d once", all, calls+2)
				break
			}
		}
		if sent := recipetest.Ops(route, path); len(sent) != 2 {
			t.Errorf("%d requests %v, want 2: the first addition and all others", len(sent), sent)
		}
	}, zkenv.Only("in real time, goroutines may come too late for the batch", zkenv.Embedded, zkenv.EmbeddedEnsemble))
}

// TestRequestsOfACounter counts what the page says.
func TestRequestsOfACounter(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		n := newCounter(t, route.Client(t), path)
		expect := func(what string, want ...fault.Op) {
			t.Helper()
			recipetest.MustHaveSent(t, what, route, path, want...)
		}
		mustAdd(t, n, 1)
		route.ResetRequests()
		mustAdd(t, n, 1)
		expect("an addition to the latest version seen", fault.SetData)
		mustAdd(t, newCounter(t, env.Client(t), path), 1)
		mustAdd(t, n, 1)
		expect("an addition after another client's", fault.SetData, fault.GetData, fault.SetData)
		if swapped, err := n.CompareAndSet(t.Context(), 9, 1); swapped || err != nil {
			t.Errorf("compare and set: %v, %v", swapped, err)
		}
		expect("a compare and set that is refused, after a transaction about no znode", fault.GetData)
		mustBe(t, n, 4)
		expect("a get", fault.GetData)
		if swapped, err := newCounter(t, route.Client(t), path).CompareAndSet(t.Context(), 9, 1); swapped || err != nil {
			t.Errorf("compare and set: %v, %v", swapped, err)
		}
		expect("the first compare and set of a client that is refused, with such a transaction", fault.GetData, fault.GetData)
	})
}

// TestVersionsRunThroughMinusOne: a server takes −1 for any version. A write at −2 leaves 0.
func TestVersionsRunThroughMinusOne(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv)
		n, val := newCounter(t, c, "/n"), newValue(t, c, "/v")
		mustAdd(t, n, 1)
		must.OK(t, val.Set(t.Context(), []string{"a"}))
		for _, path := range []string{"/n", "/v"} {
			must.OK(t, srv.SetVersion(path, -3))
		}
		for i := range int64(4) {
			if got := mustAdd(t, newCounter(t, recipetest.ClientOf(t, srv), "/n"), 1); got != i+2 {
				t.Errorf("addition %d returned %d", i, got)
			}
			if _, err := val.Update(t.Context(), func(old []string, _ bool) ([]string, error) { return append(old, "b"), nil }); err != nil {
				t.Errorf("update %d: %v", i, err)
			}
			for _, path := range []string{"/n", "/v"} {
				_, st, err := c.Get(t.Context(), path)
				if want := []int32{-2, 0, 1, 2}[i]; err != nil || st.Version != want {
					t.Errorf("version %d of %s after %d changes, %v; want %d", st.Version, path, i+1, err, want)
				}
			}
		}
		must.OK(t, srv.SetVersion("/n", math.MaxInt32))
		mustAdd(t, newCounter(t, recipetest.ClientOf(t, srv), "/n"), 1)
		if _, st := must.Get2(c.Get(t.Context(), "/n"))(t); st.Version != math.MinInt32 {
			t.Errorf("version %d after the greatest one", st.Version)
		}
		must.OK(t, srv.SetVersion("/n", -1))
		if _, err := newCounter(t, recipetest.ClientOf(t, srv), "/n").Add(t.Context(), 1); !errors.Is(err, counter.ErrVersion) {
			t.Errorf("addition at version -1: %v, want ErrVersion", err)
		}
		mustBe(t, n, 6)
	})
}

// TestARecreatedZnodeIsSaid: another client deletes the counter and creates it again, so that its
// version is the one that was read.
func TestARecreatedZnodeIsSaid(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		n := newCounter(t, c, path)
		mustAdd(t, n, 5)
		must.OK(t, c.Delete(t.Context(), path))
		mustAdd(t, newCounter(t, env.Client(t), path), 100) // its version is 0 again
		if _, err := n.Add(t.Context(), 1); !errors.Is(err, counter.ErrVersion) {
			t.Errorf("addition to a znode that was created again: %v, want ErrVersion", err)
		}
		if v, err := n.Add(t.Context(), 1); err != nil {
			t.Errorf("the next addition: %d, %v", v, err)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

// TestACallThatEndsLeavesTheOthers: the contexts of some of the calls of a batch end. The others get
// their results, and the last that leaves ends the request.
func TestACallThatEndsLeavesTheOthers(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		n := newCounter(t, route.Client(t), path)
		mustAdd(t, n, 1)
		held := route.Rules().Add(fault.Rule{Op: fault.SetData, Path: path, Action: fault.HoldRequest})
		first, cancelFirst := context.WithCancel(t.Context())
		waiting, cancelWaiting := context.WithCancel(t.Context())
		defer cancelWaiting()
		errs := make(chan error, 2)
		go func() {
			_, err := n.Add(first, 10)
			errs <- err
		}()
		must.Receive(t, held.Hit(), "the first write")
		go func() {
			_, err := n.Add(waiting, 100)
			errs <- err
		}()
		env.Quiesce()
		cancelWaiting()
		if err := must.Receive(t, errs, "the end of the waiting call"); !errors.Is(err, context.Canceled) || errors.Is(err, framework.ErrUnknownOutcome) {
			t.Errorf("call that was not sent: %v, want Canceled alone", err)
		}
		cancelFirst()
		if err := must.Receive(t, errs, "the end of the first call"); !errors.Is(err, context.Canceled) || !errors.Is(err, framework.ErrUnknownOutcome) {
			t.Errorf("call that was sent: %v, want Canceled and ErrUnknownOutcome", err)
		}
		held.Release()
		if v := mustAdd(t, n, 1000); v != 1001 && v != 1011 {
			t.Errorf("number %d, want 1001 or 1011", v)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}
