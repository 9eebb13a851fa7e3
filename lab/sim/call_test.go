package sim_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"
)

// call makes a client's call of a recipe. Its context ends after the limit. call is the validator of
// "bounded calls" and, for errors, of "nothing hidden".
func (c *client) call(op string, r *rand.Rand, limit time.Duration, fn func(context.Context) error) error {
	env := c.env
	ctx, cancel := context.WithTimeoutCause(env.ctx, limit, endedBy[r.IntN(len(endedBy))])
	defer cancel()
	began := time.Now()
	err := fn(ctx)
	env.report(c.name, op+" has returned", err)
	if late := time.Since(began) - limit; late > promptly && env.ctx.Err() == nil {
		env.violated(boundedCalls, "%s of %s returned %v after its context had ended: %v", op, c.name, late, err)
	}
	env.judge(ctx, c.name, op, err)
	return err
}

// judge holds the error of a call against those that are documented.
func (env *environment) judge(ctx context.Context, by, op string, err error) {
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
	case outcome == "context" && ctx.Err() == nil:
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
