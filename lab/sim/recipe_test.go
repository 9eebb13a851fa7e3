package sim_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
)

// A recipe is what some schedules have in addition to the locks. To add a recipe, write a file
// like election_test.go or kept_test.go, and add a row to recipes.
type recipe struct {
	name       string
	oneIn      int                                 // the schedules that have it; 0 for 3
	guarantees []guarantee                         // that only this recipe has; a deliberate bug breaks each
	plan       func(p *plan, r *rand.Rand)         // adds targets and workers to a plan; nil if there are none
	live       func(env *environment) (end func()) // starts other work; end ends it, when all is well; nil if there is none
	met        []string                            // counts that must not be 0 after many schedules
	bugs       []deliberate                        // for the guarantees
	lockers    map[string]lockerOf                 // by the kinds of the targets
}

// A lockerOf sets how a worker acquires a target of a recipe at a path: see handle.
type lockerOf func(k *worker, f *framework.Client, at string, h *handle) error

// allRecipes returns all recipes. A new row goes to the end, so that seeds keep their schedules.
func allRecipes() []*recipe {
	return []*recipe{election(), kept(), cached(), partitioned(), discovered(), permitted(), counted(), gated(), mixed(), scheduled()}
}

// recipeEnv names a recipe that all schedules have.
const recipeEnv = "SIM_RECIPE"

// choose gives every recipe to its share of the plans.
func (p *plan) choose(seed uint64) {
	for i, x := range allRecipes() {
		if r := rand.New(rand.NewPCG(seed, uint64(7+i))); r.IntN(cmp.Or(x.oneIn, 3)) == 0 || x.name == os.Getenv(recipeEnv) {
			p.have(x, r)
		}
	}
}

// have gives a recipe to the plan, unless the plan has it.
func (p *plan) have(x *recipe, r *rand.Rand) {
	if slices.ContainsFunc(p.recipes, func(other *recipe) bool { return other.name == x.name }) {
		return
	}
	p.recipes = append(p.recipes, x)
	if x.plan != nil {
		x.plan(p, r)
	}
}

// liveRecipes starts the work of the plan's recipes until end is called.
func (env *environment) liveRecipes() (end func()) {
	var ends []func()
	for _, x := range env.plan.recipes {
		if x.live != nil {
			ends = append(ends, x.live(env))
		}
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// A task is what a recipe does next to the locks.
type task struct {
	env  *environment
	over chan struct{} // closed when all is well and the workers have ended
	all  sync.WaitGroup
}

func (env *environment) newTask() *task { return &task{env: env, over: make(chan struct{})} }

// each calls do for each client, on a goroutine and with dice of its own.
func (k *task) each(dice uint64, do func(c *client, r *rand.Rand)) {
	for _, c := range k.env.clients {
		pass(apart)
		k.all.Go(func() { do(c, rand.New(rand.NewPCG(c.plan.seed, dice))) })
	}
}

// throughout calls live with the client's framework.Client, again and again, until the end.
func (k *task) throughout(c *client, live func(f *framework.Client)) {
	for !k.ended(0) {
		if f := c.usable(); f != nil {
			live(f)
		} else {
			k.ended(time.Second)
		}
	}
}

// ended waits for the end, for d at most, and reports whether it has come.
func (k *task) ended(d time.Duration) bool {
	select {
	case <-k.over:
	case <-time.After(d):
	}
	return closed(k.over)
}

// end ends the task.
func (k *task) end() {
	close(k.over)
	k.all.Wait()
}

// made returns what a constructor made. Its arguments are ours, so an error is a bug of the simulation.
func made[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// lockerOf returns how to acquire targets of the kind, nil if no recipe has such targets.
func (p *plan) lockerOf(kind string) lockerOf {
	for _, x := range p.recipes {
		if l := x.lockers[kind]; l != nil {
			return l
		}
	}
	return nil
}
