package gocrondocent

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/locktel"
	"github.com/docent-go/docent/recipes/schedule"
)

// ErrNotHere is returned by Lock if the slot is not to run here: it is done or at work elsewhere.
var ErrNotHere = errors.New("the job's slot is not to run here")

// A Locker is a [gocron.Locker] on package schedule: each slot of a job runs once. Its methods may be called
// concurrently.
type Locker struct {
	client *framework.Client
	dir    string
	period time.Duration
	opts   []schedule.Option

	mu     sync.Mutex
	warned map[string]bool // the keys of jobs that come far from a multiple of the period, maxWarned at the most
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns the Locker of the jobs below dir, and sends nothing yet. A job's znode has its name, which must
// be the same on all hosts and differ between jobs: gocron.WithName.
//
// A job's slot is the host's time, rounded to the period, because gocron does not tell it. All hosts that come within
// half a period before or after it mean the same slot. So the period has to be shorter than the time between two runs
// of a job, the jobs have to be due at multiples of it, and clocks must differ by less than half of it: a minute
// for jobs of a crontab. gocron.WithStartAt makes a DurationJob so; gocron.WithDistributedJobLocker takes a Locker
// for one job. The period must be in whole seconds, and at least one. If a job comes more than ten seconds, or a
// quarter of the period, before or after a multiple, the client's logger warns once, and of a thousand jobs at the
// most.
//
// By default Lock waits for one period at the most: schedule.WithWait. If arguments are faulty, NewLocker returns
// all faults.
func NewLocker(c *framework.Client, dir string, period time.Duration, opts ...schedule.Option) (*Locker, error) {
	var fault error
	wait := period
	if period < time.Second || period%time.Second != 0 {
		fault = fmt.Errorf("period %v: must be in whole seconds, and at least one", period)
		wait = time.Second
	}
	opts = append([]schedule.Option{schedule.WithWait(wait)}, opts...)
	_, err := schedule.New(c, dir, opts...)
	if err := errors.Join(fault, err); err != nil {
		return nil, fmt.Errorf("gocrondocent: new locker: %w", err)
	}
	return &Locker{client: c, dir: dir, period: period, opts: opts, warned: make(map[string]bool)}, nil
}

// Lock returns when the job's slot has begun here. It returns an error that wraps [ErrNotHere] if the slot is done or
// under way elsewhere, and schedule's errors if it is missed or lost. gocron then skips the run, and calls the
// function of gocron.AfterLockError. The client's logger warns of a slot that is missed or lost.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	dir := l.dir + "/" + url.PathEscape(key)
	s, err := schedule.New(l.client, dir, l.opts...)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	slot := now.Round(l.period)
	log := l.client.Logger().Named("schedule").With(zap.String(locktel.AttrPath, l.client.AbsolutePath(dir)))
	if off := now.Sub(slot); off.Abs() > min(l.period/4, maxClockSkew) && l.warnFirst(key) {
		log.Warn(fmt.Sprintf("the job comes far from a multiple of %v: it is not due at one (take a shorter period), "+
			"this host's clock is off, or the scheduler starts jobs late", l.period), zap.Duration("off", off))
	}
	held := &lock{log: log, begun: make(chan struct{}), end: make(chan bool, 1), over: make(chan struct{})}
	go held.run(ctx, s, slot) // ends with Unlock, or with the lease; Lock or Unlock waits for it
	select {
	case <-held.begun:
		return held, nil
	case <-held.over:
	}
	if held.err != nil {
		return nil, held.err
	}
	run := held.result.Run
	return nil, fmt.Errorf("%w: %v, process %d on %s", ErrNotHere, held.result.Outcome, run.PID, run.Host)
}

// warnFirst reports whether to warn of the job now.
func (l *Locker) warnFirst(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.warned[key] || len(l.warned) >= maxWarned {
		return false
	}
	l.warned[key] = true
	return true
}

const (
	maxClockSkew = 10 * time.Second // more than the clocks of a fleet differ
	maxWarned    = 1_000            // jobs; a program may make ever new names
)

// A lock is a run of a slot. Its goroutine waits in the run while gocron's job works.
type lock struct {
	log    *zap.Logger
	begun  chan struct{} // closed at the begin
	end    chan bool     // capacity 1: from Unlock, whether the job was stopped
	over   chan struct{} // closed after the run
	result schedule.Result
	err    error
}

var errStopped = errors.New("gocrondocent: the scheduler was shut down while the job worked")

func (h *lock) run(ctx context.Context, s *schedule.Schedule, slot time.Time) {
	defer close(h.over)
	h.result, h.err = s.Run(ctx, slot, func(_ context.Context, l *lease.Lease) error {
		close(h.begun)
		select {
		case stopped := <-h.end:
			if stopped {
				return errStopped
			}
			return nil
		case <-l.Lost(): // not the end of ctx: the job may work on
			return l.Err()
		}
	})
	begun := h.result.Outcome == schedule.Ran || h.result.Outcome == schedule.LostInTheMiddle
	if h.err != nil && (ctx.Err() == nil || begun) { // gocron drops the error
		h.log.Warn("the job's slot has no recorded end", zap.Time("slot", slot), zap.Stringer("outcome", h.result.Outcome), zap.Error(h.err))
	}
}

// Unlock records the end of the run. If the scheduler was shut down before the job has returned, the run counts as
// stopped in the middle, because gocron does not tell whether it came to its end. Unlock returns the
// [lease.LostError] of a lease that was lost meanwhile, and the errors of [schedule.Schedule.Run]; gocron drops them.
func (h *lock) Unlock(ctx context.Context) error {
	h.end <- ctx.Err() != nil
	<-h.over
	return h.err
}
