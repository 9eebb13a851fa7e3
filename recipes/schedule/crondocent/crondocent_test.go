package crondocent_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/recipes/schedule/crondocent"
	"github.com/docent-go/docent/testing/zkserver"
)

func newSchedule(t *testing.T, srv *zkserver.Server) *schedule.Schedule {
	t.Helper()
	c := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial)))(t)
	t.Cleanup(func() { _ = c.Close() })
	s := must.Get(schedule.New(c, "/jobs/report", schedule.WithHistory(100)))(t)
	return s
}

// TestAJobOfAFleet: two hosts whose timers are 300 ms apart run a job of 10 ms each minute, in an hour.
func TestAJobOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		var runs atomic.Int32
		var mu sync.Mutex
		outcomes := make(map[schedule.Outcome]int)
		ctx, cancel := context.WithCancel(t.Context())
		var hosts sync.WaitGroup
		var last *schedule.Schedule
		for i := range 2 {
			last = newSchedule(t, srv)
			fleet := must.Get(crondocent.New(cron.New(cron.WithChain(late(time.Duration(i)*300*time.Millisecond))), func(r schedule.Result, err error) {
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				outcomes[r.Outcome]++
			}))(t)
			must.Get(fleet.Add("* * * * *", last, func(context.Context, *lease.Lease) error {
				runs.Add(1)
				<-time.After(10 * time.Millisecond)
				return nil
			}))(t)
			hosts.Go(func() { fleet.Run(ctx) })
		}
		begun := time.Now()
		<-time.After(time.Hour + time.Second)
		cancel()
		hosts.Wait()
		if runs.Load() != 60 || outcomes[schedule.Ran] != 60 || outcomes[schedule.DoneElsewhere] != 60 {
			t.Errorf("%d runs, outcomes %v", runs.Load(), outcomes)
		}
		found, err := last.History(t.Context())
		if err != nil || len(found) != 60 {
			t.Fatalf("%d runs in the history, %v", len(found), err)
		}
		for i, run := range found {
			if want := begun.Truncate(time.Minute).Add(time.Duration(i+1) * time.Minute); !run.Slot.Equal(want) {
				t.Errorf("slot %v, want %v", run.Slot, want)
			}
		}
	})
}

// late is a wrapper of a host whose timer is late.
func late(d time.Duration) cron.JobWrapper {
	return func(j cron.Job) cron.Job { return cron.FuncJob(func() { <-time.After(d); j.Run() }) }
}

// TestRunWaitsForItsJobs: the end of the context ends the jobs, and Run waits for them.
func TestRunWaitsForItsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		reported := make(chan error, 1)
		fleet := must.Get(crondocent.New(cron.New(), func(_ schedule.Result, err error) { reported <- err }))(t)
		must.Get(fleet.Add("0 * * * *", newSchedule(t, srv), func(ctx context.Context, _ *lease.Lease) error {
			<-ctx.Done()
			<-time.After(time.Second)
			return context.Cause(ctx)
		}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		fleet.Run(ctx)
		select {
		case err := <-reported:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		default:
			t.Error("Run returned before its job")
		}
	})
}

func TestFaultyArguments(t *testing.T) {
	_, err := crondocent.New(nil, nil)
	recipetest.Says(t, err, "cron: must not be nil", "report: must not be nil")
	fleet := must.Get(crondocent.New(cron.New(), func(schedule.Result, error) {}))(t)
	_, err = fleet.Add("bad", nil, nil)
	recipetest.Says(t, err, "schedule: must not be nil", "fn: must not be nil", "expected exactly 5 fields")
	_, err = fleet.Add("@every 1h", nil, nil)
	recipetest.Says(t, err, "schedule: must not be nil", "no slots")
	if !errors.Is(err, crondocent.ErrNoSlots) {
		t.Error(err)
	}
}

// Jobs are refused while the cron runs, and are due at once, so some have begun by then. They return, and the cron can
// be stopped.
func TestARefusedJobOfARunningCronReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cron.New(cron.WithParser(atOnce{}))
		fleet := must.Get(crondocent.New(c, func(schedule.Result, error) { t.Error("a refused job has run") }))(t)
		c.Start()
		for range 50 {
			recipetest.Says(t, recipetest.Err(fleet.Add("", nil, nil)), "schedule: must not be nil")
		}
		select {
		case <-c.Stop().Done():
		case <-time.After(time.Minute):
			t.Fatal("a refused job has not returned")
		}
	})
}

// atOnce is a parser, and what it finds: a schedule of which a run is always due.
type atOnce struct{}

func (atOnce) Parse(string) (cron.Schedule, error) { return atOnce{}, nil }
func (atOnce) Next(t time.Time) time.Time          { return t }
