package sim_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A guarantee is what docent promises, by the name that it has everywhere. Each has a
// validator, which reports violations under that name.
type guarantee string

const (
	exclusion      guarantee = "exclusion"
	lossFirst      guarantee = "loss before succession"
	noOrphan       guarantee = "no orphan"
	ownSession     guarantee = "own session only"
	grantOrder     guarantee = "order"
	monotonicFence guarantee = "monotonic fence"
	boundedCalls   guarantee = "bounded calls"
	honestAnswers  guarantee = "honest answers"
	liveness       guarantee = "liveness"
	honestStates   guarantee = "honest states"
	nothingHidden  guarantee = "nothing hidden"
)

func guarantees() []guarantee {
	return []guarantee{
		exclusion, lossFirst, noOrphan, ownSession, grantOrder,
		monotonicFence, boundedCalls, honestAnswers, liveness, honestStates, nothingHidden,
	}
}

// A violation is what a validator has found.
type violation struct {
	guarantee guarantee
	at        time.Duration
	text      string
}

func (v violation) String() string { return fmt.Sprintf("%v: %s: %s", v.at, v.guarantee, v.text) }

// An event is a line of the trace. It is put into words only if it is asked for.
type event struct {
	at     time.Duration
	actor  string
	what   string
	detail any
}

// guid matches what differs from run to run by its nature: the ids in names of znodes.
var guid = regexp.MustCompile(`_c_[0-9a-f-]{36}`)

func (e event) String() string {
	detail := ""
	switch d := e.detail.(type) {
	case nil:
	case error:
		detail = ": " + strings.ReplaceAll(d.Error(), "\n", "; ")
	default:
		detail = fmt.Sprint(" ", d)
	}
	return guid.ReplaceAllString(fmt.Sprintf("%14v  %-10s %s%s", e.at, e.actor, e.what, detail), "_c_*")
}

// note adds a line to the trace. It needs env.mu.
func (env *environment) note(actor, what string, detail any) {
	env.events = append(env.events, event{env.now(), actor, what, detail})
}

// report is note for those without env.mu.
func (env *environment) report(actor, what string, detail any) {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.note(actor, what, detail)
}

// violatedLocked reports a violation. It needs env.mu.
func (env *environment) violatedLocked(g guarantee, format string, args ...any) {
	v := violation{g, env.now(), guid.ReplaceAllString(fmt.Sprintf(format, args...), "_c_*")}
	env.violations = append(env.violations, v)
	env.note("VALIDATOR", "VIOLATION of "+string(g)+": "+v.text, nil)
}

func (env *environment) violated(g guarantee, format string, args ...any) {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.violatedLocked(g, format, args...)
}

// count adds to what the run's summary tells.
func (env *environment) count(what string, n int) {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.counts[what] += n
}

// trace returns the trace in words.
func (env *environment) trace() string {
	env.mu.Lock()
	defer env.mu.Unlock()
	var b strings.Builder
	for _, e := range env.events {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

// sortedTrace is the trace with what happened at one instant in the order of its words:
// two runs that differ in nothing else are the same.
func (env *environment) sortedTrace() string {
	env.mu.Lock()
	defer env.mu.Unlock()
	lines := make([]string, len(env.events))
	for i, e := range env.events {
		lines[i] = fmt.Sprintf("%20d %v", e.at, e)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// found returns the guarantees that are violated.
func (env *environment) found() []guarantee {
	env.mu.Lock()
	defer env.mu.Unlock()
	var all []guarantee
	for _, v := range env.violations {
		if !slices.Contains(all, v.guarantee) {
			all = append(all, v.guarantee)
		}
	}
	return all
}

// err returns the violations, nil if there are none.
func (env *environment) err() error {
	env.mu.Lock()
	defer env.mu.Unlock()
	var all []error
	for _, v := range env.violations {
		all = append(all, errors.New(v.String()))
	}
	return errors.Join(all...)
}
