package sim_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/schedule"
)

// call makes a client's call of a recipe. It is the validator of "nothing hidden" for its error.
func (c *client) call(op string, r *rand.Rand, limit time.Duration, fn func(context.Context) error) error {
	ended, err := c.within(op, r, limit, fn)
	c.env.judge(ended, c.name, op, err)
	return err
}

// within makes a client's call, whose context ends after the limit, and reports whether it has ended. It is
// the validator of "bounded calls".
func (c *client) within(op string, r *rand.Rand, limit time.Duration, fn func(context.Context) error) (ended bool, err error) {
	ctx, cancel := context.WithTimeoutCause(c.env.ctx, limit, endedBy[r.IntN(len(endedBy))])
	defer cancel()
	x := call{began: time.Now(), ends: time.Now().Add(limit)}
	err = fn(ctx)
	c.env.returned(c.name, op, x, err)
	c.env.inspect(err)
	return ctx.Err() != nil, err
}

// returned holds the end of a call against what its context says: the validator of "bounded calls".
func (env *environment) returned(by, op string, x call, err error) {
	env.report(by, op+" has returned", err)
	if late := time.Since(x.ends); !x.ends.IsZero() && late > promptly && time.Since(x.began) > promptly && env.ctx.Err() == nil {
		env.violated(boundedCalls, "%s of %s returned %v after its context had ended: %v", op, by, late, err)
	}
}

// atEnd bounds what is to come about once all is well.
func (env *environment) atEnd() time.Duration { return 2*env.settling() + 30*time.Second }

// eventually waits, once all is well, until there is no problem, and counts that. A problem that remains is a
// violation.
func (env *environment) eventually(counted string, problem func() (g guarantee, text string)) {
	for limit := time.Now().Add(env.atEnd()); env.ctx.Err() == nil; pass(env.plan.timeout / 40) {
		g, text := problem()
		if text == "" {
			env.count(counted, 1)
			return
		}
		if time.Now().After(limit) {
			env.violated(g, "all is well, and %s", text)
			return
		}
	}
}

// judge holds the error of a call, whose context has ended or not, against those that are documented.
func (env *environment) judge(ended bool, by, op string, err error) {
	if env.ctx.Err() != nil {
		return // the end of the run
	}
	env.inspect(err)
	outcome := outcomeOf(err)
	switch {
	case outcome == "":
		env.violated(nothingHidden, "%s of %s returned what no documentation names: %v", op, by, err)
	case outcome == "mixed" && !strings.Contains(op, " "+mixedKind):
		env.violated(oneKind, "%s of %s is refused for another kind, and there is none: %v", op, by, err)
	case outcome == "context" && !ended:
		env.violated(boundedCalls, "%s of %s blames a context that has not ended: %v", op, by, err)
	}
	env.count(op+": "+outcome, 1)
}

// outcomeOf returns what the summary calls the error, "" if it is not documented.
func outcomeOf(err error) string {
	if err == nil {
		return "ok"
	}
	for _, e := range expected {
		if errors.Is(err, e.err) {
			return e.name
		}
	}
	return ""
}

// promptly is how long a call may take once its context has ended: nothing, in virtual
// time, but that a timer of the same instant may come first.
const promptly = time.Millisecond

// releaseWait is how long Do and Run wait for a release, as they document.
const releaseWait = 250 * time.Millisecond

// expected are the errors that calls document, with what the summary calls them. Those
// of a context come first: its cause may look like any other.
var expected = []struct {
	err  error
	name string
}{
	{context.DeadlineExceeded, "context"},
	{context.Canceled, "context"},
	{schedule.ErrUnmarked, "unmarked"},
	{errJob, "failed"},
	{schedule.ErrPassed, "passed"},
	{lock.ErrHeld, "held"},
	{lock.ErrMixed, "mixed"}, // see checkRefusal
	{lock.ErrLost, "lost"},
	{lock.ErrReleased, "released"},
	{lock.ErrNotOwner, "not owner"},
	{lock.ErrUpgrade, "upgrade"},
	{framework.ErrClosed, "closed"},
	{framework.ErrNotConnected, "not connected"},
	{framework.ErrUnknownOutcome, "unknown outcome"},
	{framework.ErrSessionEnded, "session ended"},
}

// checkResult holds the end of a call against what its context says, and its error against
// those that are documented.
func (k *worker) checkResult(op string, c call, err error) {
	k.env.returned(k.name, op, c, err)
	k.env.judge(c.ctx.Err() != nil, k.name, op, err)
}
