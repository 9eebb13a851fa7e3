package membership //nolint:testpackage // it tests what is not exported

import (
	"fmt"
	"testing"
)

// An environment is one path, as the ensemble has it, and the requests that it may still apply. It is the model
// of what a client may have left behind.
type environment struct {
	owner   int64   // of the znode at the path; 0 for none
	late    []int64 // sessions with a create that was sent, and has no reply yet
	ended   []int64 // sessions that the ensemble has expired
	present int64   // the client's session
	steps   string
}

const foreign = 99 // another client's session

func lacking(all []int64, one int64) (rest []int64) {
	for _, id := range all {
		if id != one {
			rest = append(rest, id)
		}
	}
	return rest
}

func has(all []int64, one int64) bool { return len(lacking(all, one)) < len(all) }

// TestPastKnowsItsOwn visits every sequence of six steps of one path. In each state, a znode of a former
// session of the client's is one of Past's, and another client's never is.
func TestPastKnowsItsOwn(t *testing.T) {
	t.Parallel()
	states, formers := 0, 0
	var visit func(w environment, past func() *Past, depth int)
	visit = func(w environment, past func() *Past, depth int) {
		states++
		own := w.owner != 0 && w.owner != foreign
		if own && w.owner != w.present {
			formers++
		}
		if got, want := past().Has(w.owner, w.present), own && w.owner != w.present; got != want {
			t.Fatalf("after%s: a znode of session %d in session %d is a former one: %v, want %v", w.steps, w.owner, w.present, got, want)
		}
		if depth == 0 {
			return
		}
		step := func(name string, change func(env *environment), know func(p *Past)) {
			next := w
			next.late, next.ended = append([]int64{}, w.late...), append([]int64{}, w.ended...)
			next.steps += " " + name
			change(&next)
			visit(next, func() *Past {
				p := past()
				if know != nil {
					know(p)
				}
				return p
			}, depth-1)
		}
		creating := has(w.late, w.present)
		if !creating && w.owner == 0 {
			step("create", func(env *environment) { env.owner = env.present }, func(p *Past) { p.Creates(w.present); p.Created(w.present) })
		}
		if !creating && w.owner != 0 {
			step("create refused", func(*environment) {}, func(p *Past) { p.Creates(w.present); p.Refused(w.present) })
		}
		if !creating {
			step("create without a reply", func(env *environment) { env.late = append(env.late, env.present) }, func(p *Past) { p.Creates(w.present) })
		}
		for _, id := range w.late {
			if id == w.present {
				continue // its reply, or the end of the session, comes first
			}
			step(fmt.Sprintf("late create of %d", id), func(env *environment) {
				env.late = lacking(env.late, id)
				if env.owner == 0 && !has(env.ended, id) {
					env.owner = id
				}
			}, nil)
		}
		step("next session", func(env *environment) { env.present++ }, nil)
		if w.owner != 0 {
			step("deleted by an operator", func(env *environment) { env.owner = 0 }, nil)
		} else {
			step("taken by another client", func(env *environment) { env.owner = foreign }, nil)
		}
		for id := int64(1); id < w.present; id++ {
			if !has(w.ended, id) {
				step(fmt.Sprintf("session %d expires", id), func(env *environment) {
					if env.ended = append(env.ended, id); env.owner == id {
						env.owner = 0
					}
				}, nil)
			}
		}
	}
	visit(environment{present: 1}, func() *Past { return new(Past) }, 6)
	t.Logf("%d states, %d with a former znode", states, formers)
	if formers == 0 {
		t.Error("no state has a former znode: the test shows nothing")
	}
}
