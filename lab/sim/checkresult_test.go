package sim_test

import (
	"context"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/schedule"
)

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
// those that are documented: the validators of "bounded calls" and, for errors, of
// "nothing hidden".
func (k *worker) checkResult(op string, c call, err error) {
	env := k.env
	env.report(k.name, op+" has returned", err)
	if late := time.Since(c.ends); !c.ends.IsZero() && late > promptly && time.Since(c.began) > promptly {
		env.violated(boundedCalls, "%s of %s returned %v after its context had ended: %v", op, k.name, late, err)
	}
	env.judge(c.ctx.Err() != nil, k.name, op, err)
}
