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
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/recipes/schedule/gocrondocent"
	"github.com/docent-go/docent/testing/zkserver"
)

func newClient(t *testing.T, srv *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	c, err := framework.NewClient(srv.Addr(), append(opts, framework.WithDialer(srv.Dial))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// everyMinute returns a scheduler with a job of each minute, whose clock is late.
func everyMinute(t *testing.T, late time.Duration, task any, opts ...gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	s, err := gocron.NewScheduler(opts...)
	if err != nil {
		t.Fatal(err)
	}
	first := time.Now().Truncate(time.Minute).Add(time.Minute + late)
	_, err = s.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(task), gocron.WithName("report"),
		gocron.WithStartAt(gocron.WithStartDateTime(first)))
	if err != nil {
		t.Fatal(err)
	}
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
						l, err := gocrondocent.NewLocker(c, "/jobs", time.Minute)
						if err != nil {
							t.Fatal(err)
						}
						locker = l
					}
					s := everyMinute(t, late, func() { runs.Add(1); <-time.After(10 * time.Millisecond) }, gocron.WithDistributedLocker(locker))
					s.Start()
					all = append(all, s)
				}
				<-time.After(time.Until(time.Now().Truncate(time.Minute).Add(10*time.Minute + 30*time.Second)))
				for _, s := range all {
					if err := s.Shutdown(); err != nil {
						t.Error(err)
					}
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
			l, err := gocrondocent.NewLocker(newClient(t, srv), "/jobs", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			lockers = append(lockers, l)
		}
		const key = "github.com/x/y.f"
		held, err := lockers[0].Lock(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		refused := func(what string, want error) {
			t.Helper()
			if _, err := lockers[1].Lock(t.Context(), key); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		refused("under way", gocrondocent.ErrNotHere)
		if err := held.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		refused("done", gocrondocent.ErrNotHere)
		<-time.After(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		held, err = lockers[0].Lock(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		<-time.After(time.Minute)
		refused("under way, after the scheduler's shutdown", gocrondocent.ErrNotHere)
		if err := held.Unlock(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("unlock of a job that was stopped: %v", err)
		}
		refused("stopped", lock.ErrLost)
	})
}

// TestLockIsLost: the session ends while the job works, which gocron can't end.
func TestLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		c := newClient(t, srv)
		l, err := gocrondocent.NewLocker(c, "/jobs", time.Hour, schedule.WithRerun())
		if err != nil {
			t.Fatal(err)
		}
		held, err := l.Lock(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if err := srv.Expire(c.Session().ID); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if err := held.Unlock(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("unlock: %v, want the loss", err)
		}
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
		e, err := gocrondocent.NewElector(newClient(t, srv), "/leader")
		if err != nil {
			t.Fatal(err)
		}
		s, err := gocron.NewScheduler(gocron.WithDistributedElector(e), gocron.WithStopTimeout(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.NewJob(gocron.DurationJob(20*time.Millisecond), gocron.NewTask(task), gocron.WithSingletonMode(gocron.LimitModeReschedule)); err != nil {
			t.Fatal(err)
		}
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
	if err := <-first.done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
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
	l, err := gocrondocent.NewLocker(c, "/jobs", period, opts...)
	if err != nil {
		t.Fatal(err)
	}
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
					held, err := l.Lock(t.Context(), "report")
					if err != nil {
						t.Fatal(err)
					}
					if err := held.Unlock(t.Context()); err != nil {
						t.Error(err)
					}
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
			held, err := other.Lock(t.Context(), "report")
			if err != nil || held.Unlock(t.Context()) != nil {
				t.Fatal(err)
			}
			if _, err := l.Lock(t.Context(), "report"); !errors.Is(err, gocrondocent.ErrNotHere) {
				t.Error(err)
			}
		}, 0},
		"an outage of two minutes": {func(t *testing.T, srv *zkserver.Server, _ *framework.Client, l *gocrondocent.Locker) {
			srv.Refuse()
			srv.Cut()
			if _, err := l.Lock(t.Context(), "report"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			srv.Accept()
		}, 1},
		"a session that ends": {func(t *testing.T, srv *zkserver.Server, c *framework.Client, l *gocrondocent.Locker) {
			held, err := l.Lock(t.Context(), "report")
			if err != nil || srv.Expire(c.Session().ID) != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second)
			if err := held.Unlock(t.Context()); !errors.Is(err, lock.ErrLost) {
				t.Error(err)
			}
		}, 1},
		"a shutdown during the wait for another": {func(t *testing.T, srv *zkserver.Server, c *framework.Client, _ *gocrondocent.Locker) {
			other, _, _ := loggedLocker(t, srv, time.Minute)
			held, err := other.Lock(t.Context(), "report")
			if err != nil {
				t.Fatal(err)
			}
			l, err := gocrondocent.NewLocker(c, "/jobs", time.Minute, schedule.WithRerun())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := l.Lock(ctx, "report"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if err := held.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}, 0},
		"a shutdown before the slot": {func(t *testing.T, srv *zkserver.Server, _ *framework.Client, l *gocrondocent.Locker) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := l.Lock(ctx, "report"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t)
				l, c, log := loggedLocker(t, srv, time.Minute)
				if err := c.AwaitConnected(t.Context()); err != nil {
					t.Fatal(err)
				}
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
	if _, err := gocrondocent.NewLocker(nil, "jobs", time.Millisecond); err == nil {
		t.Error("no error")
	} else {
		t.Log(err)
	}
	if _, err := gocrondocent.NewElector(nil, "leader"); err == nil {
		t.Error("no error")
	}
}
