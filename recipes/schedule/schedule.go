package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

// recipe begins the text of errors.
const recipe args.Recipe = "schedule"

// Errors of schedules.
var (
	// ErrPassed is returned for a slot that is missed because a later one has begun.
	ErrPassed = errtype.New("a later slot has begun", "passed")
	// ErrUnmarked is returned if the function has returned and that could not be recorded, because the
	// lease ended meanwhile. Others take the run for lost in the middle.
	ErrUnmarked = errtype.New("the run's end could not be recorded", "unmarked")
	// ErrCorrupt is returned if the path's znode has other data than a schedule's. Nothing is written.
	ErrCorrupt = errtype.New("the znode's data is not that of a schedule", "corrupt")
)

// An Outcome says what became of a slot, as far as a call of Run knows.
type Outcome int

// The outcomes of Run.
const (
	// Ran: this call's function has returned.
	Ran Outcome = iota + 1
	// DoneElsewhere: another call's function has returned, also one of this process.
	DoneElsewhere
	// RunningElsewhere: another call's function was at work a moment ago.
	RunningElsewhere
	// Missed: this call has not run the slot, and knows of no other that has.
	Missed
	// LostInTheMiddle: a run has begun and has not come to its end, of this call or of another one, and
	// is not repeated by this call.
	LostInTheMiddle
)

// String returns the outcome's name.
func (o Outcome) String() string {
	names := [...]string{"Ran", "DoneElsewhere", "RunningElsewhere", "Missed", "LostInTheMiddle"}
	if o < Ran || int(o) > len(names) {
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
	return names[o-1]
}

// A Result is what a call of Run found out, or did.
type Result struct {
	Outcome Outcome
	Run     Run // who ran the slot, or runs it, and since when; zero for Missed
}

// A Schedule is a job at a path. Its methods may be called concurrently.
type Schedule struct { // immutable
	client *framework.Client
	path   string
	lock   *lock.UnfairMutex
	cfg    config
}

// New returns the job at path, and sends nothing yet. Missing parents are created as containers, when
// they are needed. If arguments are faulty, New returns all faults.
func New(c *framework.Client, path string, opts ...Option) (*Schedule, error) {
	cfg := config{history: defaultHistory}
	faults := append(args.Target(c, path), args.Configure(&cfg, opts, Option.ForSchedule)...)
	if err := errors.Join(faults...); err != nil {
		return nil, recipe.Error(c, "new schedule", path, err)
	}
	l, err := lock.NewUnfairMutex(c, zkpath.Join(path, "lock"), &cfg.Options)
	if err != nil {
		return nil, recipe.Error(c, "new schedule", path, err)
	}
	return &Schedule{c, path, l, cfg}, nil
}

// Run runs fn for the slot unless another host has, and returns what became of the slot. slot is a time of
// the schedule in whole seconds, the same on all hosts. The error is nil if the slot's function has returned
// nil here or has returned elsewhere, and while it runs elsewhere. It is
//
//   - fn's error as it is, if fn returned one. Then the outcome is [Ran], and the slot has run;
//   - a [*lease.LostError], joined with fn's error, if the lease was lost before fn returned:
//     [LostInTheMiddle];
//   - fn's error if ctx ended before fn returned it. The run counts as stopped in the middle:
//     LostInTheMiddle;
//   - [lease.ErrLost] with the name of the host, if another call's run was lost: LostInTheMiddle;
//   - [ErrUnmarked], joined with fn's error, if the end could not be recorded: Ran, or LostInTheMiddle
//     if ctx had ended. If only the reply was lost, the end may be recorded nevertheless;
//   - [ErrPassed], [lock.ErrMixed] if the lock's znode is no session's, an error that wraps ctx's or
//     [context.DeadlineExceeded] if the wait has ended, and also [framework.ErrNotConnected] if no server
//     answered, or another error of the client that does not pass: [Missed]; [RunningElsewhere] or
//     LostInTheMiddle if Run has seen the slot's run before the wait ended.
//
// The context of fn is derived from ctx and ends when the lease is lost, with the LostError as its cause.
// fn must then stop: with [WithRerun] another host is about to run the slot. l is for its Fence and Guards,
// and fn must not release it. If fn panics the lock is released, the run is lost in the middle, and the
// panic reaches the caller.
//
// If ctx ends, Run returns as soon as fn has returned, and its end is recorded, which takes a second at the
// most. Then, and if no server answers, the lock's release goes on in the background.
func (s *Schedule) Run(
	ctx context.Context, slot time.Time, fn func(ctx context.Context, l *lease.Lease) error,
) (Result, error) {
	usercall.Require("ctx", ctx != nil)
	if err := errors.Join(slotFault(slot), args.Function("fn", fn != nil)); err != nil {
		return Result{}, recipe.Error(s.client, "run", s.path, err)
	}
	result, failed, err := newCall(s, slot).run(ctx, fn)
	err = recipe.CallError(ctx, s.client, "run", s.path, err)
	switch {
	case failed == nil:
		return result, err
	case err == nil:
		return result, failed
	}
	return result, errors.Join(failed, err)
}

// A work is the function of a run.
type work = func(ctx context.Context, l *lease.Lease) error

// slotFault returns the fault of a slot that is no time of a schedule.
func slotFault(slot time.Time) error {
	const lastYear = 9999 // that JSON can have
	switch {
	case slot.IsZero():
		return errors.New("slot: must be set")
	case slot.Nanosecond() != 0:
		return fmt.Errorf("slot %s: must be in whole seconds: a time of the schedule, not of a clock", slot.Format(time.RFC3339Nano))
	case slot.UTC().Year() < 1 || slot.UTC().Year() > lastYear:
		return fmt.Errorf("slot %s: must be in the years from 1 to %d", slot.Format(time.RFC3339Nano), lastYear)
	}
	return nil
}

// History returns the last runs, in the order in which they began; none if there was none. It shows what
// the client's server knows, which may lag behind. Errors: [ErrCorrupt] and the client's.
func (s *Schedule) History(ctx context.Context) ([]Run, error) {
	data, _, err := s.client.Get(ctx, s.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	var runs []Run
	if err == nil {
		runs, err = ParseRuns(data)
	}
	return runs, recipe.CallError(ctx, s.client, "history of", s.path, err)
}

// Path returns the job's path.
func (s *Schedule) Path() string { return s.path }
