package gocrondocent_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/recipes/schedule/gocrondocent"
	"github.com/docent-go/docent/testing/zkserver"
)

func newClient(t *testing.T, srv *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := must.Get(framework.NewClient(srv.Addr(), append(opts, framework.WithDialer(srv.Dial))...))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// everyMinute returns a scheduler with a job of each minute, whose clock is late.
func everyMinute(t *testing.T, late time.Duration, task any, opts ...gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	s := must.Get(gocron.NewScheduler(opts...))(t)
	first := time.Now().Truncate(time.Minute).Add(time.Minute + late)
	must.Get(s.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(task), gocron.WithName("report"),
		gocron.WithStartAt(gocron.WithStartDateTime(first))))(t)
	return s
}

// A plainLocker holds a lock for the duration of the job, as the Lockers of other stores do.
type plainLocker struct{ client *framework.Client }

func (l plainLocker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	m, err := lock.NewUnfairMutex(l.client, "/plain/"+key)
	if err != nil {
		return nil, err
	}
	lease, err := m.TryLock(ctx)
	return plainLock{lease}, err
}

type plainLock struct{ lease *lock.Lease }

func (l plainLock) Unlock(ctx context.Context) error { return l.lease.Release(ctx) }

// TestShortJobsOfClocksApart: two hosts whose clocks are 300 ms apart run a job of 10 ms in ten minutes. A plain
// Locker has it run twenty times.
func TestShortJobsOfClocksApart(t *testing.T) {
	for name, want := range map[string]int32{"schedule": 10, "plain": 20} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t)
				var runs atomic.Int32
				var all []gocron.Scheduler
				for _, late := range []time.Duration{0, 300 * time.Millisecond} {
					c := newClient(t, srv)
					var locker gocron.Locker = plainLocker{c}
					if name == "schedule" {
						locker = must.Get(gocrondocent.NewLocker(c, "/jobs", time.Minute))(t)
					}
					s := everyMinute(t, late, func() { runs.Add(1); <-time.After(10 * time.Millisecond) }, gocron.WithDistributedLocker(locker))
					s.Start()
					all = append(all, s)
				}
				<-time.After(time.Until(time.Now().Truncate(time.Minute).Add(10*time.Minute + 30*time.Second)))
				for _, s := range all {
					must.OK(t, s.Shutdown())
				}
				if n := runs.Load(); n != want {
					t.Errorf("%d runs, want %d", n, want)
				}
			})
		})
	}
}

// TestLock: a slot that is under way, done, or stopped elsewhere.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		var lockers []*gocrondocent.Locker
		for range 2 {
			lockers = append(lockers, must.Get(gocrondocent.NewLocker(newClient(t, srv), "/jobs", time.Hour))(t))
		}
		const key = "github.com/x/y.f"
		held := must.Get(lockers[0].Lock(t.Context(), key))(t)
		refused := func(what string, want error) {
			t.Helper()
			recipetest.Fails(t, what, recipetest.Err(lockers[1].Lock(t.Context(), key)), want)
		}
		refused("under way", gocrondocent.ErrNotHere)
		must.OK(t, held.Unlock(t.Context()))
		refused("done", gocrondocent.ErrNotHere)
		<-time.After(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		held = must.Get(lockers[0].Lock(ctx, key))(t)
		cancel()
		<-time.After(time.Minute)
		refused("under way, after the scheduler's shutdown", gocrondocent.ErrNotHere)
		recipetest.Fails(t, "unlock of a job that was stopped", held.Unlock(ctx), context.Canceled)
		refused("stopped", lock.ErrLost)
	})
}

// TestLockIsLost: the session ends while the job works, which gocron can't end.
func TestLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		c := newClient(t, srv)
		l := must.Get(gocrondocent.NewLocker(c, "/jobs", time.Hour, schedule.WithRerun()))(t)
		held := must.Get(l.Lock(t.Context(), "job"))(t)
		must.OK(t, srv.Expire(c.Session().ID))
		<-time.After(time.Minute)
		recipetest.Fails(t, "unlock", held.Unlock(t.Context()), lock.ErrLost)
	})
}

// TestTheElectorResignsAfterItsJobs: the leader is shut down while its job works. The other host leads when the job has
// ended, and not before. In real time, because gocron's Shutdown polls without a pause.
func TestTheElectorResignsAfterItsJobs(t *testing.T) {
	srv := zkserver.Run(t)
	var runs atomic.Int32
	begun, end := make(chan struct{}), make(chan struct{})
	task := func() { runs.Add(1); begun <- struct{}{}; <-end }
	type host struct {
		elector *gocrondocent.Elector
		stop    context.CancelFunc
		done    chan error
	}
	start := func() host {
		e := must.Get(gocrondocent.NewElector(newClient(t, srv), "/leader"))(t)
		s := must.Get(gocron.NewScheduler(gocron.WithDistributedElector(e), gocron.WithStopTimeout(time.Minute)))(t)
		must.Get(s.NewJob(gocron.DurationJob(20*time.Millisecond), gocron.NewTask(task), gocron.WithSingletonMode(gocron.LimitModeReschedule)))(t)
		ctx, cancel := context.WithCancel(t.Context())
		h := host{e, cancel, make(chan error, 1)}
		go func() { h.done <- e.Run(ctx, s) }()
		return h
	}
	first := start()
	<-begun
	second := start()
	first.stop()
	select {
	case <-begun:
		t.Error("the other host begins the job while it works")
	case err := <-first.done:
		t.Errorf("resigned while the job works: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := second.elector.IsLeader(t.Context()); !errors.Is(err, gocrondocent.ErrNotLeader) {
		t.Errorf("the other host leads: %v", err)
	}
	end <- struct{}{}
	recipetest.Fails(t, "Unlock", <-first.done, context.Canceled)
	<-begun
	if err := second.elector.IsLeader(t.Context()); err != nil || runs.Load() != 2 {
		t.Errorf("%v, %d runs", err, runs.Load())
	}
	second.stop()
	close(end)
	<-second.done
}

// A logbook is a log.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logbook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// count returns how many warnings have the text.
func (b *logbook) count(text string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.text.String()) {
		if strings.Contains(line, "level=WARN") && strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func loggedLocker(t *testing.T, srv *zkserver.Server, period time.Duration, opts ...schedule.Option) (*gocrondocent.Locker, *framework.Client, *logbook) {
	t.Helper()
	log := new(logbook)
	c := newClient(t, srv, framework.WithSlog(slog.New(slog.NewTextHandler(log, nil))))
	l := must.Get(gocrondocent.NewLocker(c, "/jobs", period, opts...))(t)
	return l, c, log
}

// TestAJobThatIsNotDueAtThePeriod: the log says so, once for each job.
func TestAJobThatIsNotDueAtThePeriod(t *testing.T) {
	for name, test := range map[string]struct {
		period, at time.Duration
		want       int
	}{
		"a day, due at noon":             {24 * time.Hour, 12 * time.Hour, 1},
		"a day, due at midnight":         {24 * time.Hour, 9 * time.Second, 0},
		"a day, of a clock that is late": {24 * time.Hour, 11 * time.Second, 1},
		"a day, of one that is early":    {24 * time.Hour, -11 * time.Second, 1},
		"a minute, due at noon":          {time.Minute, 12 * time.Hour, 0},
		"a second, due at its middle":    {time.Second, 400 * time.Millisecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, _, log := loggedLocker(t, zkserver.Run(t), test.period)
				<-time.After(time.Until(time.Now().Truncate(24 * time.Hour).Add(24*time.Hour + test.at)))
				for range 3 {
					must.OK(t, must.Get(l.Lock(t.Context(), "report"))(t).Unlock(t.Context()))
					<-time.After(24 * time.Hour)
				}
				if n := log.count("far from a multiple of " + test.period.String()); n != test.want {
					t.Errorf("%d warnings, want %d", n, test.want)
				}
			})
		})
	}
}

// TestWarningsAreBounded: a program with ever new names of jobs fills neither the memory nor the log.
func TestWarningsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, log := loggedLocker(t, zkserver.Run(t), 24*time.Hour)
		<-time.After(time.Until(time.Now().Truncate(24 * time.Hour).Add(36 * time.Hour)))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for n := range 1_010 {
			if _, err := l.Lock(ctx, strconv.Itoa(n)); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		if n := log.count("far from a multiple"); n != 1_000 {
			t.Errorf("%d warnings, want 1000", n)
		}
	})
}

// TestAMissOrALossIsLogged: gocron drops the errors of Unlock, and those of Lock unless it has an AfterLockError.
func TestAMissOrALossIsLogged(t *testing.T) {
	const warning = "the job's slot has no recorded end"
	for name, test := range map[string]struct {
		harm func(*testing.T, *zkserver.Server, *framework.Client, *gocrondocent.Locker)
		want int
	}{
		"done elsewhere": {func(t *testing.T, srv *zkserver.Server, _ *framework.Client, l *gocrondocent.Locker) {
			other, _, _ := loggedLocker(t, srv, time.Minute)
			must.OK(t, must.Get(other.Lock(t.Context(), "report"))(t).Unlock(t.Context()))
			recipetest.Fails(t, "Lock", recipetest.Err(l.Lock(t.Context(), "report")), gocrondocent.ErrNotHere)
		}, 0},
		"an outage of two minutes": {func(t *testing.T, srv *zkserver.Server, _ *framework.Client, l *gocrondocent.Locker) {
			srv.Refuse()
			srv.Cut()
			recipetest.Fails(t, "Lock", recipetest.Err(l.Lock(t.Context(), "report")), context.DeadlineExceeded)
			srv.Accept()
		}, 1},
		"a session that ends": {func(t *testing.T, srv *zkserver.Server, c *framework.Client, l *gocrondocent.Locker) {
			held := must.Get(l.Lock(t.Context(), "report"))(t)
			must.OK(t, srv.Expire(c.Session().ID))
			<-time.After(time.Second)
			recipetest.Fails(t, "Unlock", held.Unlock(t.Context()), lock.ErrLost)
		}, 1},
		"a shutdown during the wait for another": {func(t *testing.T, srv *zkserver.Server, c *framework.Client, _ *gocrondocent.Locker) {
			other, _, _ := loggedLocker(t, srv, time.Minute)
			held := must.Get(other.Lock(t.Context(), "report"))(t)
			l := must.Get(gocrondocent.NewLocker(c, "/jobs", time.Minute, schedule.WithRerun()))(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			recipetest.Fails(t, "Lock", recipetest.Err(l.Lock(ctx, "report")), context.DeadlineExceeded)
			must.OK(t, held.Unlock(t.Context()))
		}, 0},
		"a shutdown before the slot": {func(t *testing.T, srv *zkserver.Server, _ *framework.Client, l *gocrondocent.Locker) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			recipetest.Fails(t, "Lock", recipetest.Err(l.Lock(ctx, "report")), context.Canceled)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t)
				l, c, log := loggedLocker(t, srv, time.Minute)
				must.OK(t, c.AwaitConnected(t.Context()))
				test.harm(t, srv, c, l)
				if n := log.count(warning); n != test.want {
					t.Errorf("%d warnings, want %d", n, test.want)
				}
			})
		})
	}
}

// TestFaultyArguments: all faults at once.
func TestFaultyArguments(t *testing.T) {
	recipetest.Says(t, recipetest.Err(gocrondocent.NewLocker(nil, "jobs", time.Millisecond)),
		"client: must not be nil", `path "jobs"`, "period 1ms: must be in whole seconds")
	recipetest.Says(t, recipetest.Err(gocrondocent.NewElector(nil, "leader")), "client: must not be nil", `path "leader"`)
}
