package chaos_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/testing/zktest"
)

// outages counts, for each recipe, the outages that were longer than the client's session, and began
// while a call of the recipe was under way or something was held by it.
type outages struct {
	mu    sync.Mutex // guards following
	busy  map[string]int
	began time.Time       // zero while the client is connected
	met   map[string]bool // the recipes that were busy then
}

// during calls do, which uses the recipe.
func (o *outages) during(recipe string, do func()) {
	o.count(recipe, 1)
	defer o.count(recipe, -1)
	do()
}

func (o *outages) count(recipe string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy == nil {
		o.busy = make(map[string]int)
	}
	o.busy[recipe] += n
}

// change returns the recipes that have met an outage longer than a session, if one ends with the state.
func (o *outages) change(to framework.State, session time.Duration, at time.Time) (met []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case to == framework.Connected:
		if !o.began.IsZero() && at.Sub(o.began) > session {
			for recipe := range o.met {
				met = append(met, recipe)
			}
		}
		o.began = time.Time{}
	case to == framework.Suspended && o.began.IsZero():
		o.began, o.met = at, make(map[string]bool)
		for recipe, n := range o.busy {
			if n > 0 {
				o.met[recipe] = true
			}
		}
	}
	return met
}

// metOutage begins the counts of outages that were longer than a session.
const metOutage = "met an outage longer than its session, with the recipe: "

// changed is called with every change of the client's state.
func (w *worker) changed(c framework.StateChange) {
	for _, recipe := range w.outages.change(c.To, w.Session, time.Now()) {
		w.did(metOutage + recipe)
	}
}

// outageName is the fault that all recipes of all workers meet.
const outageName = "outage longer than a session, all servers killed"

// outageFaults have all clients without any server for longer than the longest session lasts. Servers
// that are killed or frozen give each session its full time again; those that are cut off from their
// clients let them expire.
func (r *run) outageFaults() []fault {
	faults := []fault{
		r.outage(outageName, (*zktest.Server).Kill),
		r.outage("outage longer than a session, all servers frozen", (*zktest.Server).Freeze),
	}
	if r.namespaces {
		faults = append(faults, r.outage("outage longer than a session, all clients cut off", r.ensemble.CutClients))
	}
	return faults
}

func (r *run) outage(name string, do func(s *zktest.Server) error) fault {
	return fault{name, func(ctx context.Context, d dice) done {
		f := done{whom: "all servers", from: history.Monotonic()}
		var all sync.WaitGroup
		for _, s := range r.ensemble.Servers {
			all.Go(func() { r.fail(do(s)) })
		}
		all.Wait()
		pause(ctx, longestSession+d.between(moment, while))
		f.to = history.Monotonic()
		r.repair()
		return f
	}}
}

func TestOutagesAreMetWhileARecipeIsBusy(t *testing.T) {
	t.Parallel()
	at := time.Now()
	for name, c := range map[string]struct {
		length time.Duration
		busy   bool
		want   int
	}{
		"long":     {5 * time.Second, true, 1},
		"short":    {3 * time.Second, true, 0},
		"not busy": {5 * time.Second, false, 0},
	} {
		var o outages
		o.during("other", func() {})
		suspend := func() { o.change(framework.Suspended, 4*time.Second, at) }
		if c.busy {
			o.during("lock", suspend)
		} else {
			suspend()
		}
		o.change(framework.Lost, 4*time.Second, at.Add(4*time.Second))
		if met := o.change(framework.Connected, 4*time.Second, at.Add(c.length)); len(met) != c.want {
			t.Errorf("%s: %v has met it, want %d", name, met, c.want)
		}
	}
}
