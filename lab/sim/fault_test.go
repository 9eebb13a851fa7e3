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
	spares   bool         // harms no client's connection, or names the client that it harms: see world.harm
	action   fault.Action // of a rule; 0 if the kind is none
	ops      []fault.Op   // of a rule, which has one of them
	begin    func(w *world, r *rand.Rand, span time.Duration) (end func())
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

// sortFaults puts the faults into the order of their beginning.
func (p *plan) sortFaults() {
	slices.SortStableFunc(p.faults, func(a, b plannedFault) int { return cmp.Compare(a.at, b.at) })
}

// injectFaults has everything go wrong that is planned, and ends all of it at the horizon.
func (w *world) injectFaults() {
	type ending struct {
		at   time.Duration
		name string
		end  func()
	}
	var pending []ending
	endUntil := func(limit time.Duration) {
		for len(pending) > 0 && pending[0].at <= limit {
			pass(pending[0].at - w.now())
			w.tell("fault", "ends "+pending[0].name, nil)
			pending[0].end()
			pending = pending[1:]
		}
		pass(limit - w.now())
	}
	for _, f := range w.plan.faults {
		endUntil(f.at)
		w.tell("fault", f.kind.name, f.span)
		if !f.kind.spares {
			w.harm(nil, f.span)
		}
		if end := f.kind.begin(w, rand.New(rand.NewPCG(f.seed, 5)), f.span); end != nil {
			pending = append(pending, ending{min(f.at+f.span, w.plan.horizon), f.kind.name, end})
			slices.SortStableFunc(pending, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
		}
	}
	endUntil(w.plan.horizon)
	w.heal()
}

// heal repairs what may be broken. A watch whose event was dropped stays lost.
func (w *world) heal() {
	w.tell("fault", "all is well again", nil)
	w.harm(nil, 0)
	w.srv.Rules().Clear()
	w.srv.Thaw()
	w.srv.Accept()
	for _, f := range w.srv.Frontends() {
		f.Heal()
		f.CatchUp()
	}
	for _, c := range w.clients {
		c.line.set(false, false)
	}
}

func (w *world) now() time.Duration { return time.Since(w.began) }

// target returns the target with the path.
func (w *world) target(path string) *target {
	for _, t := range w.plan.targets {
		if t.path == path {
			return t
		}
	}
	panic(fmt.Sprint("no target at ", path))
}
