// Package crondocent runs jobs of github.com/robfig/cron/v3 once in a fleet, for each time of their crontab. It is a
// module of its own, so that cron stays out of docent's requirements.
//
//	fleet, err := crondocent.New(cron.New(), report)
//	nightly, err := schedule.New(client, "/jobs/nightly")
//	_, err = fleet.Add("0 3 * * *", nightly, makeReport)
//	fleet.Run(ctx) // on every host
//
// Stability: may change.
package crondocent

import (
	"context"
	"errors"
	"fmt"

	"github.com/robfig/cron/v3"

	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/schedule"
)

// ErrNoSlots is returned by Add for "@every": its times are counted from each host's start, so hosts have no slot in
// common.
var ErrNoSlots = errors.New("times that are counted from the start of a process are no slots of a fleet")

// A Fleet has the jobs of a cron.Cron that run once in a fleet. Add may be called concurrently.
type Fleet struct {
	cron   *cron.Cron
	report func(schedule.Result, error)
	ctx    context.Context // of Run; set before the cron starts
}

// New returns a Fleet whose jobs are run by c, which must not be started: Run does that. All hosts need the same
// location (cron.WithLocation). report is called with what each call of schedule's Run returns, and may be called
// concurrently.
func New(c *cron.Cron, report func(schedule.Result, error)) (*Fleet, error) {
	var faults []error
	if c == nil {
		faults = append(faults, errors.New("cron: must not be nil"))
	}
	if report == nil {
		faults = append(faults, errors.New("report: must not be nil"))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("crondocent: new: %w", errors.Join(faults...))
	}
	return &Fleet{cron: c, report: report}, nil
}

// Add adds a job. For each time of the spec, which is the slot, fn runs on one host, as [schedule.Schedule.Run]
// says. Each job needs a Schedule of its own. A chain of the cron must not delay a run beyond the next slot, whose
// run it would then be. Errors: those of the spec, and [ErrNoSlots].
func (f *Fleet) Add(spec string, s *schedule.Schedule, fn func(ctx context.Context, l *lease.Lease) error) (cron.EntryID, error) {
	var faults []error
	if s == nil {
		faults = append(faults, errors.New("schedule: must not be nil"))
	}
	if fn == nil {
		faults = append(faults, errors.New("fn: must not be nil"))
	}
	added := make(chan cron.EntryID, 1)
	id, err := f.cron.AddFunc(spec, func() {
		id, ok := <-added
		if !ok {
			return // the job was refused
		}
		added <- id
		f.report(s.Run(f.ctx, f.cron.Entry(id).Prev, fn))
	})
	if err == nil {
		if _, delay := f.cron.Entry(id).Schedule.(cron.ConstantDelaySchedule); delay {
			err = fmt.Errorf("spec %q: %w", spec, ErrNoSlots)
		}
	}
	if err := errors.Join(append(faults, err)...); err != nil {
		f.cron.Remove(id)
		close(added)
		return 0, fmt.Errorf("crondocent: add: %w", err)
	}
	added <- id
	return id, nil
}

// Run starts the cron, and stops it when ctx ends, which is the context of all runs. It returns when all running jobs
// have returned. It must be called once.
func (f *Fleet) Run(ctx context.Context) {
	f.ctx = ctx
	f.cron.Start()
	<-ctx.Done()
	<-f.cron.Stop().Done()
}
