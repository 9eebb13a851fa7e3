package sim_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zkserver"
)

// A plan is what a seed decides before anything happens.
type plan struct {
	timeout   time.Duration // of sessions
	horizon   time.Duration // until when there are faults and new work
	latency   time.Duration // of a frame, on average; one way
	version   string        // of the servers
	frontends int
	root      string // that everything is below; "" if clients have no views
	leader    int    // the front end that leads; -1 if none does, and a member does that nothing harms
	targets   []*target
	clients   []clientPlan
	faults    []plannedFault
	recipes   []*recipe
}

type clientPlan struct {
	seed     uint64
	view     viewKind
	policy   retry.Policy // nil for the client's default
	auth     bool
	slow     bool // a listener takes long
	panics   bool // a listener panics
	onLoss   bool // OnSuspend
	revoked  bool // obeys requests to release
	position bool // wants to know its place in the queue
	handoff  int  // how often a mutex may be passed on; 0 for never
	workers  []workerPlan
}

type workerPlan struct {
	seed  uint64
	owned bool // shares the client's owner, else it is its goroutine
	brisk bool // rests for moments only
	kinds []string
	multi []string // the paths of a multi's members
}

// rounds is how many session timeouts a schedule has, at the least and at the most.
const minRounds, maxRounds = 3, 9

// targetKinds are the locks of the simulation: kinds by path.
var targetKinds = []struct{ path, kind string }{
	{"/sim/mutex", "mutex"},
	{"/sim/deep/down/mutex", "mutex"},
	{"/sim/rw", "rw"},
	{"/sim/semaphore", "semaphore"},
	{"/sim/exclusive", "exclusive"},
}

func newPlan(seed uint64) *plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &plan{
		timeout:   pick(r, 4*time.Second, 6*time.Second, 10*time.Second, 30*time.Second, time.Minute, 2*time.Minute),
		latency:   pick(r, 0, 200*time.Microsecond, 200*time.Microsecond, 2*time.Millisecond, 15*time.Millisecond),
		version:   pick(rand.New(rand.NewPCG(seed, 24)), versions()...),
		frontends: pick(r, 1, 1, 3, 3),
		leader:    -1,
	}
	if p.frontends > 1 && r.IntN(2) == 0 {
		p.leader = r.IntN(p.frontends)
	}
	p.horizon = time.Duration(float64(p.timeout) * (minRounds + r.Float64()*(maxRounds-minRounds)))
	kinds := slices.Clone(targetKinds)
	r.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, k := range kinds[:1+r.IntN(3)] {
		p.targets = append(p.targets, newTarget(k.path, k.kind))
	}
	for range 2 + r.IntN(2) {
		p.clients = append(p.clients, p.client(r))
	}
	p.faults = newFates(r, p)
	p.strike(rand.New(rand.NewPCG(seed, 25)), 4, readKinds())
	p.crowd(rand.New(rand.NewPCG(seed, 6)))
	p.choose(seed)
	p.strike(rand.New(rand.NewPCG(seed, 27)), 6, foreignKinds())
	p.drawViews(rand.New(rand.NewPCG(seed, 26)))
	return p
}

// versions are those of the servers that differ for the recipes.
func versions() []string {
	return []string{"3.6.0", "3.8.0", zkserver.DefaultVersion, "3.8.4", "3.9.6"}
}

func (p *plan) client(r *rand.Rand) clientPlan {
	c := clientPlan{
		seed: r.Uint64(),
		policy: pick(r, nil, retry.Never(), retry.Forever(100*time.Millisecond), retry.Times(3, 20*time.Millisecond),
			retry.Forever(30*time.Second), retry.Exponential(2*time.Second, 5), retry.Forever(10*time.Minute)),
		auth:     r.IntN(4) == 0,
		slow:     r.IntN(4) == 0,
		panics:   r.IntN(4) == 0,
		onLoss:   r.IntN(4) == 0,
		revoked:  r.IntN(3) == 0,
		position: r.IntN(4) == 0,
		handoff:  pick(r, 0, 1, 3),
	}
	for range 1 + r.IntN(2) {
		k := workerPlan{seed: r.Uint64(), owned: r.IntN(2) == 0}
		for _, t := range p.targets {
			k.kinds = append(k.kinds, t.uses()...)
		}
		if len(p.targets) > 1 && r.IntN(2) == 0 {
			for _, t := range p.targets {
				k.multi = append(k.multi, t.path)
			}
			k.kinds = append(k.kinds, "multi")
		}
		r.Shuffle(len(k.kinds), func(i, j int) { k.kinds[i], k.kinds[j] = k.kinds[j], k.kinds[i] })
		k.kinds = k.kinds[:min(len(k.kinds), 1+r.IntN(2))]
		c.workers = append(c.workers, k)
	}
	return c
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// upTo returns a duration below limit.
func upTo(r *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(max(limit, 1))))
}
