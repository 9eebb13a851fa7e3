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

// A world is one run: a server, its clients, their faults, and the truth about it.
type world struct {
	plan     *plan  // immutable
	bug      bug    // immutable; what is broken on purpose
	script   func() // immutable; what happens instead of the plan, nil for nothing
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
	closing    map[*framework.Client]bool // Close has been called
	harms      []harm
	whose      map[int64]*record            // the framework.Client of each session; nil before it knows
	taken      map[string]bool              // paths of kept znodes that the operator has at the moment
	ends       map[place]end                // of the latest znode of a client at a place
	kinds      kindsSeen                    // of the path that has several
	observers  []func(zkserver.Transaction) // of recipes; called with mu held
}

func newWorld(p *plan, b bug) *world {
	return &world{
		plan: p, bug: b, counts: map[string]int{}, nodes: map[string]znode{}, made: map[string]znode{}, inDir: map[string][]string{},
		leases: map[*lock.Lease]*leaseRecord{}, released: map[*lock.Lease]bool{}, killed: map[int64]bool{}, doomed: map[nodeKey]bool{},
		closing: map[*framework.Client]bool{}, whose: map[int64]*record{}, taken: map[string]bool{}, ends: map[place]end{},
		kinds: kindsSeen{contenders: map[string]znode{}},
	}
}

// apart is by how much those who act begin one after another.
const apart = 1013 * time.Microsecond

// run runs the schedule, inside a bubble.
func (w *world) run() {
	before := goroutines()
	w.began = time.Now()
	w.ctx, w.cancel = context.WithCancel(context.Background())
	defer w.cancel()
	if err := w.start(); err != nil {
		w.violated(liveness, "the start: %v", err)
		return
	}
	if w.script != nil {
		w.script()
	} else {
		w.live()
	}
	w.settle()
	w.shutDown()
	w.checkGoroutines(before)
	w.counts[virtualKey] = int(w.now() / time.Millisecond)
}

// live has all clients do what is planned, and injects the planned faults.
func (w *world) live() {
	var working sync.WaitGroup
	for _, k := range w.workers {
		pass(apart) // what happens at one instant happens in no certain order
		working.Go(k.work)
	}
	if w.bug.harm != nil {
		w.tasks.Go(func() { w.bug.harm(w) })
	}
	endRecipes := w.liveRecipes()
	over := make(chan struct{})
	go w.watchWaits(over) // ends when the workers have
	w.injectFaults()
	w.tasks.Wait()
	w.finish(&working)
	close(over)
	endRecipes()
}

// start starts the server, makes what is to be there, and starts the clients.
func (w *world) start() error {
	opts := []zkserver.Option{
		zkserver.WithVersion(w.plan.version), zkserver.WithFrontends(w.plan.frontends), zkserver.WithReapInterval(time.Second), zkserver.WithObserver(w.observe),
		zkserver.WithSessionTimeouts(2*zkserver.DefaultTick, time.Hour),
	}
	if w.plan.leader >= 0 {
		opts = append(opts, zkserver.WithLeader(w.plan.leader))
	}
	var err error
	if w.srv, err = zkserver.Start(opts...); err != nil {
		return err
	}
	w.count(versionKey(w.plan.version), 1)
	w.operator, err = framework.NewClient(w.srv.Addr(), framework.WithDialer(w.dialOperator),
		framework.WithMaxPacket(smallPacket, smallPacket), framework.WithSessionTimeout(w.plan.timeout))
	if err != nil {
		return err
	}
	for _, t := range w.plan.targets {
		if _, err := w.operator.Create(w.ctx, t.registerPath(), nil, framework.WithParents()); err != nil {
			return err
		}
	}
	for i, p := range w.plan.clients {
		c := w.newClient(i, p)
		w.clients = append(w.clients, c)
		for j, p := range p.workers {
			w.workers = append(w.workers, c.newWorker(j, p))
		}
	}
	for _, c := range w.clients {
		pass(apart)
		if err := c.start(); err != nil {
			return err
		}
	}
	return nil
}

// patience is how long workers may take to end once all is well: at the most, each waits for all
// others in turn, and each keeps what it has for up to three session timeouts.
func (w *world) patience() time.Duration {
	turn := 3*w.plan.timeout + 5*w.prompt()
	return w.settling() + time.Duration(len(w.workers))*turn
}

// finish waits for the workers. One that does not end waits for something that
// does not come.
func (w *world) finish(working *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { // ends with the workers
		working.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-time.After(w.patience()):
	}
	w.mu.Lock()
	var hang []string
	for _, k := range w.workers {
		if k.doing != "has ended" {
			hang = append(hang, k.name+": "+k.doing)
		}
	}
	w.violatedLocked(liveness, "%v after all was well: %s", w.patience(), strings.Join(hang, ", "))
	w.mu.Unlock()
	w.cancel()
	select {
	case <-done:
	case <-time.After(w.patience()):
		w.violated(boundedCalls, "%s, and its context has ended", strings.Join(hang, ", "))
		panic(w.trace()) // the bubble can't end
	}
}

// settle checks what must hold once all is well and all workers have ended.
func (w *world) settle() {
	pass(3*w.plan.timeout + 30*time.Second)
	w.mu.Lock()
	for path, n := range w.nodes {
		w.violatedLocked(noGhost, "%s of session %v still stands, and nobody wants it", path, hex(n.owner))
	}
	w.mu.Unlock()
	for _, c := range w.clients {
		f := c.current()
		if n := f.PendingDeletes(); n != 0 {
			w.violated(noGhost, "%s has %d deletions to do", c.name, n)
		}
		if s := f.State(); s != framework.Connected {
			w.violated(liveness, "%s is %v", c.name, s)
		}
	}
	if w.ctx.Err() == nil && len(w.found()) == 0 {
		w.probe()
	}
}

// shutDown closes everything.
func (w *world) shutDown() {
	for _, c := range w.clients {
		c.close()
	}
	_ = w.operator.Close()                       // it owes nothing
	if left := w.srv.Sessions(); len(left) > 0 { // at once: they would expire
		w.violated(noGhost, "%d sessions exist although every client was closed", len(left))
	}
	pass(w.plan.timeout + 10*time.Second) // slow listeners return
	_ = w.srv.Close()                     // always nil
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
func (w *world) checkGoroutines(before census) {
	w.cancel()
	synctest.Wait()
	if runtime.NumGoroutine() > before.all { // else it is not worth the dump
		if n := goroutines().inBubble - before.inBubble; n > 0 {
			w.violated(nothingHidden, "%d goroutines are left", n)
			w.tell("VALIDATOR", "the goroutines", stacks())
		}
	}
	if w.bug.end != nil {
		w.bug.end()
	}
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
