package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestRequestsOfARun counts what the page says.
func TestRequestsOfARun(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		s, other := newSchedule(t, route.Client(t), path), newSchedule(t, env.Client(t), path)
		mustRun(t, s, slot(1), idle, schedule.Ran)
		route.ResetRequests()
		mustRun(t, s, slot(2), idle, schedule.Ran)
		recipetest.MustHaveSent(t, "a run", route, path, fault.GetData, fault.GetData, fault.Multi, fault.Multi, fault.Multi, fault.Multi)
		mustRun(t, other, slot(3), idle, schedule.Ran)
		env.Quiesce()
		route.ResetRequests()
		mustRun(t, s, slot(3), idle, schedule.DoneElsewhere)
		recipetest.MustHaveSent(t, "a slot that is done", route, path, fault.GetData, fault.GetData)
	}, zkenv.Only("a run that takes 50 ms looks at its lock, too", zkenv.Embedded))
}

// TestEveryRequest has each kind of fault meet each request of a call, with a loss of the session after it, with
// leases that end with the connection, and with neither. The slot runs once, and what Run says is true.
func TestEveryRequest(t *testing.T) {
	t.Parallel()
	for _, action := range []fault.Action{fault.CutBefore, fault.DropReply, fault.HoldRequest, fault.HoldReply} {
		for _, loss := range []string{"none", "expiry", "suspension"} {
			for _, rerun := range []bool{false, true} {
				t.Run(fmt.Sprint(action, loss, rerun), func(t *testing.T) {
					t.Parallel()
					met, hit := 0, true
					for ; hit && met < 30; met++ {
						virtual(t, func(t *testing.T, srv *zkserver.Server) { hit = meet(t, srv, action, met, loss, rerun) })
					}
					if met < 6 || hit {
						t.Errorf("met %d requests, want 6 to 29", met)
					}
				})
			}
		}
	}
}

// meet has the action meet one request of a call, and reports whether there was such a request.
func meet(t *testing.T, srv *zkserver.Server, action fault.Action, number int, loss string, rerun bool) bool {
	t.Helper()
	var opts []schedule.Option
	if rerun {
		opts = append(opts, schedule.WithRerun())
	}
	if loss == "suspension" {
		opts = append(opts, recipes.WithLossPolicy(lease.OnSuspend))
	}
	c := client(t, srv)
	session := c.Session().ID
	a, b := newSchedule(t, c, "/job", opts...), newSchedule(t, client(t, srv), "/job", opts...)
	mustRun(t, a, slot(0), idle, schedule.Ran)
	rule := srv.Rules().Add(fault.Rule{Session: session, Action: action, Skip: number})
	var begun, ended atomic.Int32
	fn := func(ctx context.Context, _ *lease.Lease) error {
		begun.Add(1)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		ended.Add(1)
		return nil
	}
	done := later(t.Context(), a, slot(1), fn)
	what := fmt.Sprintf("%v of request %d, loss: %s", action, number, loss)
	select {
	case <-rule.Hit():
		if loss == "expiry" {
			must.OK(t, srv.Expire(session))
		}
		if action == fault.HoldRequest || action == fault.HoldReply {
			<-time.After(time.Second)
			rule.Release()
		}
	case <-time.After(time.Minute):
	}
	got := must.Receive(t, done, "the result")
	hit := rule.Hits() > 0
	rule.Release()
	first := begun.Load()
	other, err := b.Run(t.Context(), slot(1), fn)
	switch {
	case got.Outcome == schedule.Ran && ended.Load() == 0, got.Outcome != schedule.Ran && got.Outcome != schedule.LostInTheMiddle:
		t.Errorf("%s: %v, %v after %d runs", what, got.Outcome, got.err, ended.Load())
	case first != 1 || !rerun && begun.Load() != 1:
		t.Errorf("%s: %d runs, then %d", what, first, begun.Load())
	case got.Outcome == schedule.Ran && got.err == nil && other.Outcome != schedule.DoneElsewhere:
		t.Errorf("%s: ran, and the other says %v, %v", what, other.Outcome, err)
	case rerun && ended.Load() == 0:
		t.Errorf("%s: no run has ended", what)
	case loss == "none" && got.err != nil:
		t.Errorf("%s: %v, %v, without a loss", what, got.Outcome, got.err)
	}
	return hit
}

// TestNoMarkWithoutTheLock: an operator deletes the lock's znode while the begin is on its way, and another host
// takes the lock. The begin is refused, and the call begins again under a lease of its own.
func TestNoMarkWithoutTheLock(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, srv *zkserver.Server) {
		c, other := client(t, srv), client(t, srv)
		s := newSchedule(t, c, "/job")
		mustRun(t, s, slot(0), idle, schedule.Ran)
		rule := srv.Rules().Add(fault.Rule{Session: c.Session().ID, Op: fault.Multi, Skip: 1, Action: fault.HoldRequest})
		var begun atomic.Int32
		done := later(t.Context(), s, slot(1), counting(&begun, time.Second))
		must.Receive(t, rule.Hit(), "the begin")
		must.OK(t, other.Delete(t.Context(), "/job/lock"))
		theirs := must.Get(must.Get(lock.NewUnfairMutex(other, "/job/lock"))(t).TryLock(t.Context()))(t)
		rule.Release()
		<-time.After(time.Minute)
		if n := begun.Load(); n != 0 {
			t.Errorf("%d runs while another client has the lock", n)
		}
		must.OK(t, theirs.Release(t.Context()))
		got := <-done
		check(t, got.Result, got.err, schedule.Ran)
		mustBe(t, s, "done done")
	})
}

// TestALossIsSaidWhenItIsKnown: a run has begun, and its lock is free. It may have ended meanwhile, so a call whose
// wait ends before it has the lock does not say that the run was lost.
func TestALossIsSaidWhenItIsKnown(t *testing.T) {
	t.Parallel()
	for _, rerun := range []bool{false, true} {
		virtual(t, func(t *testing.T, srv *zkserver.Server) {
			opts := []schedule.Option{schedule.WithWait(time.Minute)}
			if rerun {
				opts = append(opts, schedule.WithRerun())
			}
			a, c := client(t, srv), client(t, srv)
			_, _ = newSchedule(t, a, "/job").Run(t.Context(), slot(1), func(ctx context.Context, _ *lease.Lease) error {
				must.OK(t, srv.Expire(a.Session().ID))
				<-ctx.Done()
				return context.Cause(ctx)
			})
			srv.Rules().Add(fault.Rule{Session: c.Session().ID, Op: fault.Multi, Action: fault.HoldRequest, Times: fault.Forever})
			defer srv.Rules().Clear()
			if run := mustRun(t, newSchedule(t, c, "/job", opts...), slot(1), idle, schedule.Missed, context.DeadlineExceeded); run != (schedule.Run{}) {
				t.Errorf("run %+v", run)
			}
		})
	}
}

// TestAnEndThatIsLost says that the lease was lost, and not that a context has ended which the caller does not know.
func TestAnEndThatIsLost(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, srv *zkserver.Server) {
		c := client(t, srv)
		got, err := newSchedule(t, c, "/job").Run(t.Context(), slot(1), func(context.Context, *lease.Lease) error {
			srv.Refuse()
			srv.Cut()
			return nil
		})
		srv.Accept()
		check(t, got, err, schedule.Ran, schedule.ErrUnmarked, lease.ErrLost)
		if errors.Is(err, context.Canceled) {
			t.Errorf("%v: no context of the caller has ended", err)
		}
	})
}

// TestWhatTheMarksHaveAsLost: the begin of a run, or its end, is on its way. An operator deletes the lock's znode, which
// the client does not learn, and another call takes the lock and marks the run as lost. The connection breaks, so the
// first call reads the marks. A run that is lost does not begin, and its end is not recorded.
func TestWhatTheMarksHaveAsLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule    fault.Rule
		runs    int32
		outcome schedule.Outcome
		err     error
	}{
		"begin": {fault.Rule{Skip: 1, Action: fault.HoldReply}, 0, schedule.LostInTheMiddle, lease.ErrLost},
		"end":   {fault.Rule{Skip: 2, Action: fault.HoldRequest}, 1, schedule.Ran, schedule.ErrUnmarked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, srv *zkserver.Server) {
				c, other := client(t, srv), client(t, srv)
				s, theirs := newSchedule(t, c, "/job"), newSchedule(t, other, "/job")
				mustRun(t, s, slot(0), idle, schedule.Ran)
				srv.Rules().Add(fault.Rule{Session: c.Session().ID, Op: fault.Event, Action: fault.DropEvent})
				rule := tt.rule // of this server
				rule.Session, rule.Op = c.Session().ID, fault.Multi
				held := srv.Rules().Add(rule)
				var runs atomic.Int32
				done := later(t.Context(), s, slot(1), counting(&runs, 0))
				must.Receive(t, held.Hit(), "the request")
				srv.Rules().Add(fault.Rule{ // nor does a read show it before the marks are read
					Session: c.Session().ID, Op: fault.GetData, Path: "/job/lock", Action: fault.Refuse, Code: fault.Throttled, Times: 10,
				})
				must.OK(t, other.Delete(t.Context(), "/job/lock"))
				mustRun(t, theirs, slot(2), idle, schedule.Ran)
				srv.Cut()
				got := <-done
				check(t, got.Result, got.err, tt.outcome, tt.err)
				if n := runs.Load(); n != tt.runs {
					t.Errorf("%d runs, want %d", n, tt.runs)
				}
				mustBe(t, theirs, "done lost done")
			})
		})
	}
}

// TestAPauseIsThatOfOneOutage: the pauses after requests that fail begin again when one has succeeded.
func TestAPauseIsThatOfOneOutage(t *testing.T) {
	t.Parallel()
	for range 10 { // pauses are random
		virtual(t, pauseAfterAnOutage)
	}
}

func pauseAfterAnOutage(t *testing.T, srv *zkserver.Server) {
	t.Helper()
	c := client(t, srv, framework.WithRetry(retry.Times(1, 0)))
	begun, end := make(chan struct{}), make(chan struct{})
	first := later(t.Context(), newSchedule(t, client(t, srv), "/job"), slot(1), func(context.Context, *lease.Lease) error {
		close(begun)
		<-end
		return nil
	})
	<-begun
	refuse := func(times int) *fault.Handle {
		return srv.Rules().Add(fault.Rule{
			Session: c.Session().ID, Op: fault.GetData, Path: "/job", Action: fault.Refuse, Code: fault.Throttled, Times: times,
		})
	}
	outage := refuse(10)
	next := later(t.Context(), newSchedule(t, c, "/job", schedule.WithWait(time.Hour)), slot(2), idle)
	<-time.After(10 * time.Minute)
	again, ended := refuse(3), time.Now()
	close(end)
	check(t, (<-first).Result, nil, schedule.Ran)
	got := <-next
	check(t, got.Result, got.err, schedule.Ran)
	if took := got.at.Sub(ended); took > 1500*time.Millisecond || outage.Hits() < 10 || again.Hits() < 3 {
		t.Errorf("ran %v after the end, after %d and %d refusals", took, outage.Hits(), again.Hits())
	}
}

// TestAZnodeOfNoSessionIsNoHolder: nothing would end the wait for it. What is known of a slot is said nevertheless.
func TestAZnodeOfNoSessionIsNoHolder(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, srv *zkserver.Server) {
		c := client(t, srv)
		s, began := newSchedule(t, c, "/job"), time.Now()
		mustRun(t, s, slot(1), idle, schedule.Ran)
		must.Get(c.Create(t.Context(), "/job/lock", nil))(t)
		mustRun(t, newSchedule(t, client(t, srv), "/job"), slot(1), idle, schedule.DoneElsewhere)
		mustRun(t, newSchedule(t, c, "/job", schedule.WithWait(time.Minute)), slot(2), idle, schedule.Missed, lock.ErrMixed)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
