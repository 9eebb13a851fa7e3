package schedule

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/locktel"
)

// markWait is how long the end of a run is recorded after the call's context has ended.
const markWait = time.Second

var (
	errAgain = errors.New("the state has changed, or may have: read again")
	errGone  = errors.New("the lock is no longer held")
)

// A call is one call of Run, on one goroutine.
type call struct {
	*Schedule
	slot time.Time
	id   string
	last Result // what was known when the marks were read last
}

func newCall(s *Schedule, slot time.Time) *call {
	return &call{Schedule: s, slot: slot.Round(0).UTC(), id: crand.Text(), last: Result{Outcome: Missed}}
}

// A state is what was read of the path.
type state struct {
	marks
	version int32 // of the marks' znode
	holder  int64 // fence of the lock's holder; 0 for none
	foreign bool  // the holder's znode is no session's, and ends with none
	stale   bool  // a write has failed since, or its outcome is unknown
}

// run returns the result, the error of fn, and why the call itself failed.
func (c *call) run(ctx context.Context, fn work) (result Result, failed, err error) {
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if c.cfg.wait > 0 {
		waiting, cancel = context.WithTimeout(ctx, c.cfg.wait)
	}
	defer cancel()
	pauses, rounds := contender.Pauses.NewBackOff(), pace.Rounds()
	for waiting.Err() == nil {
		l, seen, err := c.try(waiting)
		var run *Run
		if l != nil {
			c.warnUnlessEnded(contender.Work(ctx, l, func(held context.Context, l *lease.Lease) error {
				if run, err = c.begin(waiting, l, seen); run != nil {
					result, failed, err = c.work(held, ctx, l, seen, *run, fn)
				}
				return nil
			}))
		}
		switch {
		case run != nil:
			return result, failed, err
		case err == nil:
			return c.last, nil, c.last.err()
		case waiting.Err() != nil: // err has the cause, which is compared with nothing
		case errors.Is(err, errAgain), errors.Is(err, errGone), errors.Is(err, lease.ErrHeld):
			pauses.Reset()
			_ = rounds.Wait(waiting, 1) // its error ends the loop
		case passes(err):
			_ = pace.Sleep(waiting, pauses.NextBackOff())
		default:
			return c.last, nil, err
		}
	}
	err = args.Ended(waiting, c.client)
	if ctx.Err() == nil && c.last.Outcome == RunningElsewhere && !errors.Is(err, framework.ErrNotConnected) {
		err = nil
	}
	return c.last, nil, err
}

// err returns the error of a call that has not run fn, and knows what became of the slot.
func (r Result) err() error {
	switch r.Outcome {
	case Missed:
		return ErrPassed
	case LostInTheMiddle:
		return fmt.Errorf("%w by process %d on %s", lease.ErrLost, r.Run.PID, r.Run.Host)
	}
	return nil
}

// passes reports whether a request failed with err for a condition that passes.
func passes(err error) bool {
	return framework.Retryable(err) || errors.Is(err, framework.ErrReadOnly) || errors.Is(err, framework.ErrUnknownOutcome)
}

// try reads the state, and tries the lock if the slot may begin. If another run has the lock, try returns errAgain
// after a change.
func (c *call) try(ctx context.Context) (*lease.Lease, *state, error) {
	seen, watches, err := c.read(ctx)
	defer func() {
		for _, w := range watches {
			w.Close()
		}
	}()
	if err != nil {
		return nil, nil, err
	}
	switch v := c.judge(seen); {
	case v == over:
		return nil, nil, nil
	case seen.foreign:
		return nil, nil, fmt.Errorf("%w: %s is no session's", lock.ErrMixed, c.client.AbsolutePath(c.lock.Path()))
	case v == await || seen.holder != 0:
		return nil, nil, changed(ctx, watches)
	}
	l, err := c.lock.TryLock(ctx)
	return l, seen, err
}

// read reads the lock, then the marks, and watches those that exist, even if it returns an error.
func (c *call) read(ctx context.Context) (*state, []*framework.Watch, error) {
	var found [2]*framework.Watch
	var errs [2]error
	for i, path := range []string{c.lock.Path(), c.path} {
		// A read of its own shows whether an event was dropped, which WatchEach would not.
		found[i], errs[i] = c.client.Watch(ctx, path, framework.WatchData)
	}
	var watches []*framework.Watch
	for i, err := range errs {
		if err == nil {
			watches = append(watches, found[i])
		}
	}
	seen := new(state)
	switch {
	case errs[0] == nil:
		st, _ := found[0].Stat()
		seen.holder, seen.foreign = st.Czxid, !proto.IsSession(st.EphemeralOwner)
	case !errors.Is(errs[0], framework.ErrNoNode):
		return nil, watches, errs[0]
	}
	switch {
	case errs[1] == nil:
		st, _ := found[1].Stat()
		m, err := decode(found[1].Data())
		seen.marks, seen.version = m, st.Version
		return seen, watches, err
	case !errors.Is(errs[1], framework.ErrNoNode):
		return nil, watches, errs[1]
	}
	_, err := c.client.Create(ctx, c.path, nil, append(c.cfg.WithACL(), framework.WithParents())...)
	if errors.Is(err, framework.ErrNodeExists) {
		err = errAgain
	}
	return seen, watches, err
}

// changed waits until one of the watches, two at the most, fires, and returns errAgain.
func changed(ctx context.Context, watches []*framework.Watch) error {
	var either [2]<-chan struct{}
	for i, w := range watches {
		w.Recheck()
		either[i] = w.Fired()
	}
	select {
	case <-either[0]:
	case <-either[1]:
	case <-ctx.Done():
		return ctx.Err()
	}
	return errAgain
}

// judge is that of the marks, and keeps the outcome.
func (c *call) judge(seen *state) verdict {
	v, outcome, run := seen.marks.judge(c.slot, seen.holder, c.cfg.rerun, c.id)
	c.last = Result{outcome, run}
	return v
}

// begin records the begin of a run, under the lease. It returns nil if the slot may not begin: c.last has the
// outcome then. It returns errGone if the lock is lost. Then fn has not run.
func (c *call) begin(ctx context.Context, l *lease.Lease, seen *state) (run *Run, err error) {
	held, stop := l.Context(ctx)
	defer stop()
	seen.holder = l.Fence() // while the lease lasts
	err = c.mark(held, l, seen, func() (marks, bool) {
		run = nil
		v := c.judge(seen)
		switch {
		case c.last.Run.Fence == l.Fence() && c.last.Run.State == Running: // a request without a reply has recorded it
			run = &c.last.Run
		case v == begin:
			r := c.newRun(ctx, l)
			run = &r
			return seen.begun(r, c.cfg.history), true
		case v == found:
			return seen.settled(), true
		}
		return marks{}, false
	})
	if err == nil {
		if run == nil {
			c.judge(seen) // as it is recorded now
		}
		return run, nil
	}
	if l.Err() != nil {
		return nil, errGone
	}
	return nil, err
}

// newRun returns the run that begins now.
func (c *call) newRun(ctx context.Context, l *lease.Lease) Run {
	owner, party := contender.OwnerOf(ctx, c.client)
	m := contender.Metadata(owner, party, nil, nil)
	return Run{
		Slot: c.slot, State: Running, From: m.Since, Fence: l.Fence(), Call: c.id,
		Owner: owner, Host: m.Host, PID: m.PID, Process: m.Process,
	}
}

// work runs fn and records the end. held ends with ctx and with the lease.
func (c *call) work(held, ctx context.Context, l *lease.Lease, seen *state, run Run, fn work) (result Result, failed, err error) {
	failed = fn(held, l)
	ended := l.Err() // now: what happens later does not change what fn has done
	run.State, run.To = Done, time.Now().UTC().Truncate(time.Millisecond)
	outcome := Ran
	switch {
	case ended != nil || failed != nil && ctx.Err() != nil:
		run.State, outcome = Lost, LostInTheMiddle
	case failed != nil:
		run.State = Failed
	}
	if ended != nil {
		if errors.Is(ended, lease.ErrLost) && errors.Is(failed, ended) {
			ended = nil // failed says it
		}
		return Result{outcome, run}, failed, ended
	}
	err = c.record(ctx, l, seen, run)
	if outcome == LostInTheMiddle && !errors.Is(failed, ctx.Err()) {
		err = errors.Join(ctx.Err(), err)
	}
	return Result{outcome, run}, failed, err
}

// record records the end of the run while the lease lasts, and for markWait after the end of ctx. A timer may
// outlive the call.
func (c *call) record(ctx context.Context, l *lease.Lease, seen *state, run Run) error {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(markWait, cancel) })()
	recording, stop := l.Context(lasting)
	defer stop()
	err := c.mark(recording, l, seen, func() (marks, bool) { return seen.ended(run) })
	if err == nil && !seen.has(run) { // a write of unknown outcome was not applied, and another call has the lock
		err = errGone
	}
	if err != nil {
		if lost := l.Err(); lost != nil { // and not the end of a context that is not the caller's
			err = lost
		}
		err = fmt.Errorf("%w: %w", ErrUnmarked, err)
	}
	return err
}

// mark writes what edit makes of what was seen, in a transaction with the guard of the lease, until it is known
// that the marks are those, or edit wants no change. edit is called again after each change by others, and if the
// outcome of a write is unknown. It returns an error if ctx ends, if the guard fails, and for what does not pass.
func (c *call) mark(ctx context.Context, l *lease.Lease, seen *state, edit func() (marks, bool)) error {
	for rounds := pace.Rounds(); ; {
		if err := rounds.Wait(ctx, 1); err != nil {
			return err
		}
		err := c.markOnce(ctx, l, seen, edit)
		if err == nil {
			return nil
		}
		seen.stale = true
		if !errors.Is(err, errAgain) && !passes(err) {
			return err
		}
	}
}

func (c *call) markOnce(ctx context.Context, l *lease.Lease, seen *state, edit func() (marks, bool)) error {
	if seen.stale {
		data, st, err := c.client.Get(ctx, c.path)
		if err != nil {
			return err
		}
		if seen.marks, err = decode(data); err != nil {
			return err
		}
		seen.version, seen.stale = st.Version, false
	}
	next, change := edit()
	if !change {
		return nil
	}
	guards := l.Guards()
	write := func() ([]framework.TxnResult, error) {
		return c.client.Txn(ctx, append(slices.Clip(guards), framework.OpSet(c.path, next.encode(), seen.version))...)
	}
	done, err := write()
	for errors.Is(err, framework.ErrTooLarge) && len(next.Runs) > 1 { // nothing was sent: the oldest run goes
		next.Runs = next.Runs[1:]
		done, err = write()
	}
	if err == nil {
		seen.marks, seen.version = next, done[len(guards)].Stat.Version
		return nil
	}
	culprit := new(framework.TxnError)
	switch errors.As(err, &culprit); {
	case culprit.Err == nil || culprit.Index == len(guards) && !errors.Is(err, framework.ErrBadVersion):
		return err
	case culprit.Index == len(guards):
		return errAgain
	}
	return errGone
}

// warnUnlessEnded logs the error of a release, unless that is the end of the lease.
func (c *call) warnUnlessEnded(err error) {
	if err == nil || errors.Is(err, lease.ErrLost) || errors.Is(err, lease.ErrReleased) {
		return
	}
	c.client.Logger().Named("schedule").Warn("the release was refused: it is repeated in the background",
		zap.String(locktel.AttrPath, c.client.AbsolutePath(c.path)), zap.Error(err))
}
