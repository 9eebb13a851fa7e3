package sim_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// An environment is one run: a server, its clients, their faults, and the truth about it.
type environment struct {
	plan     *plan // immutable
	bug      bug   // immutable; what is broken on purpose
	began    time.Time
	ctx      context.Context // of all calls
	cancel   context.CancelFunc
	srv      *zkserver.Server
	operator *framework.Client
	clients  []*client
	workers  []*worker
	tasks    sync.WaitGroup // of faults that take their time

	mu         sync.Mutex // guards following; taken after the server's, and nothing is called under it
	events     []event
	violations []violation
	counts     map[string]int
	nodes      map[string]znode    // ephemeral ones that stand
	made       map[string]znode    // those that were ever made
	inDir      map[string][]string // their paths, by parent
	leases     map[*lock.Lease]*leaseRecord
	released   map[*lock.Lease]bool
	killed     map[int64]bool // sessions that an operator has ended
	doomed     map[nodeKey]bool
	byHand     map[nodeKey]bool           // see makeByHand
	closing    map[*framework.Client]bool // Close has been called
	harms      []harm
	whose      map[int64]*record            // the framework.Client of each session; nil before it knows
	taken      map[string]bool              // paths of kept znodes that the operator has at the moment
	ends       map[place]end                // of the latest znode of a client at a place
	writeNext  func(path string)            // told of the next ephemeral znodes; may be nil
	kinds      kindsSeen                    // of the path that has several
	observers  []func(zkserver.Transaction) // of recipes; called with mu held
}

func newEnvironment(p *plan, b bug) *environment {
	return &environment{
		plan: p, bug: b, counts: map[string]int{}, nodes: map[string]znode{}, made: map[string]znode{}, inDir: map[string][]string{},
		leases: map[*lock.Lease]*leaseRecord{}, released: map[*lock.Lease]bool{}, killed: map[int64]bool{}, doomed: map[nodeKey]bool{}, byHand: map[nodeKey]bool{},
		closing: map[*framework.Client]bool{}, whose: map[int64]*record{}, taken: map[string]bool{}, ends: map[place]end{},
		kinds: kindsSeen{contenders: map[string]znode{}},
	}
}

// apart is by how much those who act begin one after another.
const apart = 1013 * time.Microsecond

// run runs the schedule, inside a bubble.
func (env *environment) run() {
	before := goroutines()
	env.began = time.Now()
	env.ctx, env.cancel = context.WithCancel(context.Background())
	defer env.cancel()
	if err := env.start(); err != nil {
		env.violated(liveness, "the start: %v", err)
		return
	}
	env.live()
	env.settle()
	env.shutDown()
	env.checkGoroutines(before)
	env.counts[virtualKey] = int(env.now() / time.Millisecond)
}

// live has all clients do what is planned, and injects the planned faults.
func (env *environment) live() {
	var working sync.WaitGroup
	for _, k := range env.workers {
		pass(apart) // what happens at one instant happens in no certain order
		working.Go(k.work)
	}
	env.tasks.Go(func() { env.bug.harm(env) })
	endRecipes := env.liveRecipes()
	over := make(chan struct{})
	go env.watchWaits(over) // ends when the workers have
	env.injectFaults()
	env.tasks.Wait()
	env.finish(&working)
	close(over)
	endRecipes()
}

// start starts the server, makes what is to be there, and starts the clients.
func (env *environment) start() error {
	opts := []zkserver.Option{
		zkserver.WithVersion(env.plan.version), zkserver.WithFrontends(env.plan.frontends), zkserver.WithReapInterval(time.Second), zkserver.WithObserver(env.observe),
		zkserver.WithSessionTimeouts(2*zkserver.DefaultTick, time.Hour),
	}
	if env.plan.leader >= 0 {
		opts = append(opts, zkserver.WithLeader(env.plan.leader))
	}
	var err error
	if env.srv, err = zkserver.Start(opts...); err != nil {
		return err
	}
	env.count(versionKey(env.plan.version), 1)
	env.operator, err = framework.NewClient(env.srv.Addr(), framework.WithDialer(env.dialOperator),
		framework.WithMaxPacket(smallPacket, smallPacket), framework.WithSessionTimeout(env.plan.timeout))
	if err != nil {
		return err
	}
	if err := env.makeRoot(); err != nil {
		return err
	}
	for _, t := range env.plan.targets {
		if _, err := env.operator.Create(env.ctx, t.registerPath(), nil, framework.WithParents()); err != nil {
			return err
		}
	}
	for i, p := range env.plan.clients {
		c := env.newClient(i, p)
		env.clients = append(env.clients, c)
		for j, p := range p.workers {
			env.workers = append(env.workers, c.newWorker(j, p))
		}
	}
	for _, c := range env.clients {
		pass(apart)
		if err := c.start(); err != nil {
			return err
		}
	}
	return nil
}

// patience is how long workers may take to end once all is well: at the most, each waits for all
// others in turn, and each keeps what it has for up to three session timeouts.
func (env *environment) patience() time.Duration {
	turn := 3*env.plan.timeout + 5*env.prompt()
	return env.settling() + time.Duration(len(env.workers))*turn
}

// finish waits for the workers. One that does not end waits for something that
// does not come.
func (env *environment) finish(working *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { // ends with the workers
		working.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-time.After(env.patience()):
	}
	env.mu.Lock()
	var hang []string
	for _, k := range env.workers {
		if k.doing != "has ended" {
			hang = append(hang, k.name+": "+k.doing)
		}
	}
	env.violatedLocked(liveness, "%v after all was well: %s", env.patience(), strings.Join(hang, ", "))
	env.mu.Unlock()
	env.cancel()
	select {
	case <-done:
	case <-time.After(env.patience()):
		env.violated(boundedCalls, "%s, and its context has ended", strings.Join(hang, ", "))
		panic(env.trace()) // the bubble can't end
	}
}

// settle checks what must hold once all is well and all workers have ended.
func (env *environment) settle() {
	pass(3*env.plan.timeout + 30*time.Second)
	env.mu.Lock()
	for path, n := range env.nodes {
		env.violatedLocked(noOrphan, "%s of session %v still stands, and nobody wants it", path, hex(n.owner))
	}
	env.mu.Unlock()
	for _, c := range env.clients {
		f := c.current()
		if n := f.PendingDeletes(); n != 0 {
			env.violated(noOrphan, "%s has %d deletions to do", c.name, n)
		}
		if s := f.State(); s != framework.Connected {
			env.violated(liveness, "%s is %v", c.name, s)
		}
	}
	if env.ctx.Err() == nil && len(env.found()) == 0 {
		env.probe()
	}
}

// shutDown closes everything.
func (env *environment) shutDown() {
	for _, c := range env.clients {
		c.close()
	}
	_ = env.operator.Close()                       // it owes nothing
	if left := env.srv.Sessions(); len(left) > 0 { // at once: they would expire
		env.violated(noOrphan, "%d sessions exist although every client was closed", len(left))
	}
	pass(env.plan.timeout + 10*time.Second) // slow listeners return
	_ = env.srv.Close()                     // always nil
}

// A census is of goroutines.
type census struct{ all, inBubble int }

// goroutines counts them. Only the headers of the stack dump tell bubbles apart; the
// caller's comes first.
func goroutines() census {
	header, _, _ := strings.Cut(stacks(), "\n")
	_, bubble, _ := strings.Cut(strings.TrimSuffix(header, "]:"), "synctest bubble ")
	return census{runtime.NumGoroutine(), strings.Count(stacks(), "synctest bubble "+bubble+"]:")}
}

func stacks() string {
	dump := make([]byte, 256<<10)
	return string(dump[:runtime.Stack(dump, true)])
}

// checkGoroutines is the validator of "nothing hidden" for goroutines: there are as many as
// before the run.
func (env *environment) checkGoroutines(before census) {
	env.cancel()
	synctest.Wait()
	if runtime.NumGoroutine() > before.all { // else it is not worth the dump
		if n := goroutines().inBubble - before.inBubble; n > 0 {
			env.violated(nothingHidden, "%d goroutines are left", n)
			env.report("VALIDATOR", "the goroutines", stacks())
		}
	}
	env.bug.end()
}

// addCounts adds the counts of a run to the total.
func addCounts(total, counts map[string]int) {
	for what, n := range counts {
		total[what] += n
	}
}

// render tells of counts, a line for each.
func render(counts map[string]int) string {
	var lines []string
	for what, n := range counts {
		lines = append(lines, fmt.Sprintf("%10d  %s", n, what))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[12:], b[12:]) })
	return strings.Join(lines, "\n")
}
