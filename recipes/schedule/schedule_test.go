package schedule_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestASlotRunsOnce: whoever comes later finds it done, also with an earlier slot.
func TestASlotRunsOnce(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path := recipetest.Path(t)
		a, b := newSchedule(t, env.Client(t), path), newSchedule(t, env.Client(t), path)
		if found, err := a.History(t.Context()); len(found) != 0 || err != nil {
			t.Errorf("history of nothing: %v, %v", found, err)
		}
		ran := mustRun(t, a, slot(1), idle, schedule.Ran)
		if ran.Host == "" || ran.PID == 0 || ran.Process == "" || ran.Fence == 0 || ran.From.IsZero() || ran.To.Before(ran.From) {
			t.Errorf("run %+v, want its host, process, fence and times", ran)
		}
		if found := mustRun(t, b, slot(1).In(time.FixedZone("east", 3600)), idle, schedule.DoneElsewhere); found != ran {
			t.Errorf("found %+v, want %+v", found, ran)
		}
		mustRun(t, a, slot(1), idle, schedule.DoneElsewhere)
		next := mustRun(t, b, slot(2), func(context.Context, *lease.Lease) error { return errWork }, schedule.Ran, errWork)
		if next.State != schedule.Failed || next.Fence <= ran.Fence {
			t.Errorf("run %+v, want a failed one with a greater fence than %d", next, ran.Fence)
		}
		mustRun(t, a, slot(2), idle, schedule.DoneElsewhere)
		mustRun(t, a, slot(1), idle, schedule.DoneElsewhere)
		mustRun(t, a, slot(0), idle, schedule.Missed, schedule.ErrPassed)
		mustBe(t, a, "done failed")
	})
}

// TestShortJobsOfClocksApart: ten hosts whose clocks are up to 300 ms apart run a job of 10 ms, in each slot.
func TestShortJobsOfClocksApart(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, srv *zkserver.Server) {
		const hosts, slots = 10, 20
		var runs atomic.Int32
		done := make(chan schedule.Result)
		for host := range hosts {
			s := newSchedule(t, client(t, srv), "/job")
			behind := time.Duration(host) * 300 * time.Millisecond / (hosts - 1)
			go func() {
				for n := range slots {
					<-time.After(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + behind)))
					got, err := s.Run(t.Context(), slot(n), counting(&runs, 10*time.Millisecond))
					if err != nil {
						t.Errorf("host %d, slot %d: %v", host, n, err)
					}
					done <- got
				}
			}()
		}
		ran := 0
		for range hosts * slots {
			if got := <-done; got.Outcome == schedule.Ran {
				ran++
			}
		}
		if runs.Load() != slots || ran != slots {
			t.Errorf("%d runs, and %d calls that ran, of %d slots", runs.Load(), ran, slots)
		}
	})
}

// TestRunningElsewhere: a call finds another host at work, and who that is. The next slot's call waits.
func TestRunningElsewhere(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path := recipetest.Path(t)
		a, b := newSchedule(t, env.Client(t), path), newSchedule(t, env.Client(t), path)
		begun, end := make(chan int64), make(chan struct{})
		first := later(t.Context(), a, slot(1), func(_ context.Context, l *lease.Lease) error {
			begun <- l.Fence()
			<-end
			return nil
		})
		fence := must.Receive(t, begun, "the begin")
		if run := mustRun(t, b, slot(1), idle, schedule.RunningElsewhere); run.Fence != fence || run.State != schedule.Running || run.Host == "" {
			t.Errorf("run %+v, want one of fence %d", run, fence)
		}
		next := later(t.Context(), b, slot(2), idle)
		if env.Kind() == zkenv.Embedded { // a busy server may use up the wait by itself
			wait := schedule.WithWait(50 * time.Millisecond)
			mustRun(t, newSchedule(t, env.Client(t), path, wait), slot(2), idle, schedule.Missed, context.DeadlineExceeded)
			mustRun(t, newSchedule(t, env.Client(t), path, wait, schedule.WithRerun()), slot(1), idle, schedule.RunningElsewhere)
		}
		close(end)
		got := must.Receive(t, first, "the end")
		check(t, got.Result, got.err, schedule.Ran)
		got = must.Receive(t, next, "the next slot")
		check(t, got.Result, got.err, schedule.Ran)
	})
}

// TestLostInTheMiddle: a lease ends in the middle of a run. Without WithRerun no host runs the slot again.
func TestLostInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, route *zkenv.Route, l *lease.Lease, other *framework.Client){
		"expired": func(t *testing.T, route *zkenv.Route, _ *lease.Lease, _ *framework.Client) { route.Expire(t) },
		"deleted": func(t *testing.T, _ *zkenv.Route, l *lease.Lease, other *framework.Client) {
			must.OK(t, other.Delete(t.Context(), l.Node()))
		},
	} {
		for _, rerun := range []bool{false, true} {
			recipetest.Subtest(t, fmt.Sprint(name, rerun), func(t *testing.T, env *zkenv.Env) {
				path := recipetest.Path(t)
				var opts []schedule.Option
				if rerun {
					opts = append(opts, schedule.WithRerun())
				}
				route, other := env.Route(t), env.Client(t)
				a, b := newSchedule(t, route.Client(t), path, opts...), newSchedule(t, other, path, opts...)
				var next <-chan result
				got, err := a.Run(t.Context(), slot(1), func(ctx context.Context, l *lease.Lease) error {
					if rerun {
						next = later(t.Context(), b, slot(1), idle)
						env.Quiesce()
					}
					lose(t, route, l, other)
					<-ctx.Done()
					return context.Cause(ctx)
				})
				check(t, got, err, schedule.LostInTheMiddle, lease.ErrLost)
				if !rerun {
					mustRun(t, b, slot(1), idle, schedule.LostInTheMiddle, lease.ErrLost)
					mustRun(t, a, slot(1), idle, schedule.LostInTheMiddle, lease.ErrLost)
					mustRun(t, a, slot(2), idle, schedule.Ran)
					mustRun(t, b, slot(1), idle, schedule.LostInTheMiddle, lease.ErrLost)
					mustBe(t, a, "lost done")
					return
				}
				again := must.Receive(t, next, "the other's run")
				check(t, again.Result, again.err, schedule.Ran)
				mustRun(t, a, slot(1), idle, schedule.DoneElsewhere)
				mustBe(t, b, "lost done")
			})
		}
	}
}

// TestAHostThatDies: its client sends nothing more. With WithRerun a host that waits takes over when the
// session has ended.
func TestAHostThatDies(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		a, b := newSchedule(t, route.Client(t), path, schedule.WithRerun()), newSchedule(t, env.Client(t), path, schedule.WithRerun())
		begun := make(chan struct{})
		died := later(t.Context(), a, slot(1), func(ctx context.Context, _ *lease.Lease) error {
			close(begun)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		<-begun
		next := later(t.Context(), b, slot(1), idle)
		env.Quiesce()
		route.Refuse()
		route.Cut()
		got := must.Receive(t, died, "the end of the lease")
		check(t, got.Result, got.err, schedule.LostInTheMiddle, lease.ErrLost)
		ended := got.at
		got = must.Receive(t, next, "the other's run")
		check(t, got.Result, got.err, schedule.Ran)
		if !got.Run.From.After(ended.Add(-time.Millisecond)) {
			t.Errorf("the next run began at %v, and the lease ended at %v", got.Run.From, ended)
		}
		mustBe(t, b, "lost done")
	})
}

// TestAShutdownInTheMiddle: the call's context ends, and so the function, with an error. The run is recorded
// as lost at once. A function that has come to its end nevertheless is done.
func TestAShutdownInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, want := range []error{nil, errWork, context.Canceled} {
		for _, rerun := range []bool{false, true} {
			recipetest.Subtest(t, fmt.Sprint(want, rerun), func(t *testing.T, env *zkenv.Env) {
				path := recipetest.Path(t)
				var opts []schedule.Option
				if rerun {
					opts = append(opts, schedule.WithRerun())
				}
				a, b := newSchedule(t, env.Client(t), path, opts...), newSchedule(t, env.Client(t), path, opts...)
				ctx, cancel := context.WithCancel(t.Context())
				got, err := a.Run(ctx, slot(1), func(ctx context.Context, _ *lease.Lease) error {
					cancel()
					<-ctx.Done()
					return want
				})
				if want == nil {
					check(t, got, err, schedule.Ran)
					mustRun(t, b, slot(1), idle, schedule.DoneElsewhere)
					return
				}
				check(t, got, err, schedule.LostInTheMiddle, want, context.Canceled)
				mustBe(t, b, "lost")
				if rerun {
					mustRun(t, b, slot(1), idle, schedule.Ran)
				} else {
					mustRun(t, b, slot(1), idle, schedule.LostInTheMiddle, lease.ErrLost)
				}
			})
		}
	}
}

// TestAPanicReachesTheCaller: the lock is released, and the run is lost.
func TestAPanicReachesTheCaller(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path := recipetest.Path(t)
		a, b := newSchedule(t, env.Client(t), path), newSchedule(t, env.Client(t), path)
		func() {
			defer func() {
				if v := recover(); v != "oh" {
					t.Errorf("recovered %v", v)
				}
			}()
			_, _ = a.Run(t.Context(), slot(1), func(context.Context, *lease.Lease) error { panic("oh") })
		}()
		mustRun(t, b, slot(1), idle, schedule.LostInTheMiddle, lease.ErrLost)
		mustBe(t, b, "lost")
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

// TestAnOutageAtTheSlot: all servers are gone for two minutes at the slot's moment. A call waits, and runs
// the slot. One that does not wait so long says so.
func TestAnOutageAtTheSlot(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]func(srv *zkserver.Server) (end func()){
		"gone":   func(srv *zkserver.Server) func() { srv.Refuse(); srv.Cut(); return srv.Accept },
		"silent": func(srv *zkserver.Server) func() { srv.Freeze(); return srv.Thaw },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, srv *zkserver.Server) {
				c, began := client(t, srv), time.Now()
				patient := newSchedule(t, c, "/job", schedule.WithWait(time.Hour))
				brief := newSchedule(t, c, "/job", schedule.WithWait(time.Minute))
				end := outage(srv)
				waits := later(t.Context(), patient, slot(1), idle)
				got, err := brief.Run(t.Context(), slot(1), idle)
				check(t, got, err, schedule.Missed, framework.ErrNotConnected)
				if waited := time.Since(began); waited != time.Minute {
					t.Errorf("waited %v, want a minute", waited)
				}
				<-time.After(time.Minute)
				end()
				did := <-waits
				check(t, did.Result, did.err, schedule.Ran)
				if late := did.at.Sub(began); late > 2*time.Minute+20*time.Second {
					t.Errorf("ran %v after the outage began", late)
				}
			})
		})
	}
}

// TestAnOutageAtTheEnd: the servers are gone when fn returns. If the lease outlasts that, the end is recorded.
func TestAnOutageAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, lasts := range []time.Duration{time.Second, time.Minute} {
		t.Run(lasts.String(), func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, srv *zkserver.Server) {
				a, b := newSchedule(t, client(t, srv), "/job"), newSchedule(t, client(t, srv), "/job")
				over := make(chan struct{})
				got, err := a.Run(t.Context(), slot(1), func(context.Context, *lease.Lease) error {
					srv.Refuse()
					srv.Cut()
					go func() { defer close(over); <-time.After(lasts); srv.Accept() }()
					return errWork
				})
				if lasts == time.Second {
					check(t, got, err, schedule.Ran, errWork)
				} else {
					check(t, got, err, schedule.Ran, errWork, schedule.ErrUnmarked)
				}
				<-over
				want := map[bool]schedule.Outcome{true: schedule.DoneElsewhere, false: schedule.LostInTheMiddle}[lasts == time.Second]
				if got, err := b.Run(t.Context(), slot(1), idle); got.Outcome != want {
					t.Errorf("the other: %v, %v; want %v", got.Outcome, err, want)
				}
			})
		})
	}
}

// TestHistoryIsBounded keeps the last runs alone.
func TestHistoryIsBounded(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		s := newSchedule(t, env.Client(t), recipetest.Path(t), schedule.WithHistory(3))
		for n := range 5 {
			mustRun(t, s, slot(n), idle, schedule.Ran)
		}
		mustBe(t, s, "done done done")
		mustRun(t, s, slot(0), idle, schedule.Missed, schedule.ErrPassed)
		mustRun(t, s, slot(4), idle, schedule.DoneElsewhere)
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

// TestForeignDataIsLeftAlone refuses a znode that is no schedule's.
func TestForeignDataIsLeftAlone(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		s := newSchedule(t, c, path)
		for _, data := range []string{"theirs", `{"docent":2,"runs":[]}`, `{}`} {
			must.Get(c.CreateOrSet(t.Context(), path, []byte(data), framework.WithParents()))(t)
			mustRun(t, s, slot(1), idle, schedule.Missed, schedule.ErrCorrupt)
			_, err := s.History(t.Context())
			recipetest.Fails(t, "history", err, schedule.ErrCorrupt)
			if got, _, err := c.Get(t.Context(), path); string(got) != data || err != nil {
				t.Errorf("data %q, %v; want %q", got, err, data)
			}
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

// TestFaultyArguments: all faults of a call at once.
func TestFaultyArguments(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, srv *zkserver.Server) {
		s := newSchedule(t, client(t, srv), "/job")
		for text, at := range map[string]time.Time{
			"slot: must be set":   {},
			"in whole seconds":    time.Unix(1, 1),
			"years from 1 to 999": time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		} {
			got, err := s.Run(t.Context(), at, nil)
			recipetest.Says(t, err, "schedule: run /job: ", text, "fn: must not be nil")
			if got != (schedule.Result{}) {
				t.Errorf("result %+v of a call that is refused", got)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errWork)
		got, err := s.Run(ctx, slot(1), idle)
		check(t, got, err, schedule.Missed, context.Canceled, errWork)
		if paths := strings.Join(srv.Paths(), " "); strings.Contains(paths, "job") {
			t.Errorf("paths %s of calls that are refused", paths)
		}
	})
	if got := fmt.Sprint(schedule.Ran, schedule.LostInTheMiddle, schedule.Outcome(9)); got != "Ran LostInTheMiddle Outcome(9)" {
		t.Error(got)
	}
}

// TestFnThatReleases is refused: its end can't be recorded.
func TestFnThatReleases(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, srv *zkserver.Server) {
		s := newSchedule(t, client(t, srv), "/job")
		mustRun(t, s, slot(1), func(ctx context.Context, l *lease.Lease) error { return l.Release(ctx) }, schedule.LostInTheMiddle, lease.ErrReleased)
	})
}

// TestHistoryFitsTheRequest: with a client of small requests the oldest runs go, and each slot runs.
func TestHistoryFitsTheRequest(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, srv *zkserver.Server) {
		s := newSchedule(t, client(t, srv, framework.WithMaxPacket(4096, 1<<20)), "/job")
		for n := range 30 {
			mustRun(t, s, slot(n), idle, schedule.Ran)
		}
		runs := must.Get(s.History(t.Context()))(t)
		if len(runs) < 5 || len(runs) > 19 || !runs[len(runs)-1].Slot.Equal(slot(29)) || runs[0].State != schedule.Done {
			t.Errorf("%d runs, the last %+v; want some of 20, and the last slot", len(runs), runs[len(runs)-1])
		}
	})
}
