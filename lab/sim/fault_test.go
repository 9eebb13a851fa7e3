package sim_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/docent-go/docent/testing/fault"
)

// A plannedFault is something that goes wrong, from one moment to another.
type plannedFault struct {
	kind     *faultKind
	at, span time.Duration
	seed     uint64 // for what else there is to choose
}

// A faultKind is a way in which something goes wrong. begin returns how to end it, nil if
// that needs nothing.
type faultKind struct {
	name     string
	weight   int
	ensemble bool         // needs more than one front end
	led      bool         // needs a front end that leads
	spares   bool         // harms no client's connection, or names the client that it harms: see environment.harm
	action   fault.Action // of a rule; 0 if the kind is none
	ops      []fault.Op   // of a rule, which has one of them
	begin    func(env *environment, r *rand.Rand, span time.Duration) (end func())
}

// newFates draws the faults of a schedule.
func newFates(r *rand.Rand, p *plan) []plannedFault {
	var lots []*faultKind
	for _, kind := range faultKinds() {
		if kind.ensemble && p.frontends == 1 || kind.led && p.leader < 0 {
			continue
		}
		for range kind.weight {
			lots = append(lots, kind)
		}
	}
	rounds := float64(p.horizon) / float64(p.timeout)
	faults := make([]plannedFault, int(rounds*(0.3+1.5*r.Float64())))
	for i := range faults {
		span := upTo(r, p.timeout*5/2)
		if r.IntN(2) == 0 {
			span = upTo(r, p.timeout/4)
		}
		faults[i] = plannedFault{kind: lots[r.IntN(len(lots))], at: upTo(r, p.horizon), span: span, seed: r.Uint64()}
	}
	return faults
}

// strike adds fewer than most faults of the kinds. They are drawn from r, which draws nothing else, so the
// other faults of a seed don't depend on them.
func (p *plan) strike(r *rand.Rand, most int, kinds []*faultKind) {
	for range r.IntN(most) {
		p.faults = append(p.faults, plannedFault{
			kind: pick(r, kinds...), at: upTo(r, p.horizon), span: upTo(r, p.timeout), seed: r.Uint64(),
		})
	}
	p.sortFaults()
}

// sortFaults puts the faults into the order of their beginning.
func (p *plan) sortFaults() {
	slices.SortStableFunc(p.faults, func(a, b plannedFault) int { return cmp.Compare(a.at, b.at) })
}

// injectFaults has everything go wrong that is planned, and ends all of it at the horizon.
func (env *environment) injectFaults() {
	type ending struct {
		at   time.Duration
		name string
		end  func()
	}
	var pending []ending
	endUntil := func(limit time.Duration) {
		for len(pending) > 0 && pending[0].at <= limit {
			pass(pending[0].at - env.now())
			env.report("fault", "ends "+pending[0].name, nil)
			pending[0].end()
			pending = pending[1:]
		}
		pass(limit - env.now())
	}
	for _, f := range env.plan.faults {
		endUntil(f.at)
		env.report("fault", f.kind.name, f.span)
		if !f.kind.spares {
			env.harm(nil, f.span)
		}
		if end := f.kind.begin(env, rand.New(rand.NewPCG(f.seed, 5)), f.span); end != nil {
			pending = append(pending, ending{min(f.at+f.span, env.plan.horizon), f.kind.name, end})
			slices.SortStableFunc(pending, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
		}
	}
	endUntil(env.plan.horizon)
	env.heal()
}

// heal repairs what may be broken. A watch whose event was dropped stays lost.
func (env *environment) heal() {
	env.report("fault", "all is well again", nil)
	env.harm(nil, 0)
	env.srv.Rules().Clear()
	env.srv.Thaw()
	env.srv.Accept()
	for _, f := range env.srv.Frontends() {
		f.Heal()
		f.CatchUp()
	}
	for _, c := range env.clients {
		c.line.set(false, false)
	}
}

func (env *environment) now() time.Duration { return time.Since(env.began) }

// target returns the target with the path.
func (env *environment) target(path string) *target {
	for _, t := range env.plan.targets {
		if t.path == path {
			return t
		}
	}
	panic(fmt.Sprint("no target at ", path))
}
