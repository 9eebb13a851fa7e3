package chaos_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/history"
)

// A summary is what a run has come to.
type summary struct {
	history    *history.History
	length     time.Duration
	network    string // how the members reached each other
	faults     []done
	models     map[string]*tally
	succession history.LossReport
	registers  history.Registers
	stops      int            // of workers while they held
	counts     map[string]int // what workers have counted
	violations []string
	took       time.Duration // by porcupine
}

// A tally is what one model's locks have done.
type tally struct {
	grants, refused, releases, losses, killed int
	handovers                                 int // grants that followed another worker's
	groups, operations                        int
	bad                                       int // groups that are not as the model says
}

// measure counts what has happened so far.
func (r *run) measure(t *testing.T, length time.Duration) summary {
	t.Helper()
	h := must.Get(r.history())(t)
	s := summary{
		history: h, length: length, network: r.network, models: make(map[string]*tally),
		succession: h.LossReport(), registers: h.Registers(),
	}
	r.mu.Lock()
	s.faults, s.stops = slices.Clone(r.faults), len(r.stops)
	for _, err := range r.errs {
		s.violations = append(s.violations, err.Error())
	}
	r.mu.Unlock()
	s.counts = r.board.counted()
	s.violations = append(s.violations, s.succession.Faults...)
	s.violations = append(s.violations, s.registers.Faults...)
	for _, m := range allModels() {
		s.models[m.Name] = &tally{refused: h.Fails[m.Name]}
	}
	last := make(map[string]string) // by group
	for _, tenure := range h.Leases {
		s.models[tenure.Grant.Model].add(tenure, last)
	}
	return s
}

// judge measures a run that has ended, and fails the test for each violation.
func (r *run) judge(t *testing.T, length time.Duration) summary {
	t.Helper()
	s := r.measure(t, length)
	s.check(t)
	fmt.Print(s)
	for _, f := range s.violations[:min(len(s.violations), printed)] {
		t.Error(f)
	}
	return s
}

// check has porcupine look at everything.
func (s *summary) check(t *testing.T) {
	t.Helper()
	start := time.Now()
	verdicts := must.Get(s.history.Check(checkLimit))(t)
	s.took = time.Since(start)
	for _, v := range verdicts {
		s.count(t, v)
	}
}

func (n *tally) add(t *history.LeaseRecord, last map[string]string) {
	n.grants++
	switch t.End {
	case history.Released:
		n.releases++
	case history.Lost:
		n.losses++
	default:
		n.killed++
	}
	if before := last[t.Grant.Group]; before != "" && before != t.Grant.Client {
		n.handovers++
	}
	last[t.Grant.Group] = t.Grant.Client
}

// count counts a verdict, and saves the history that porcupine does not accept.
func (s *summary) count(t *testing.T, v history.CheckResult) {
	t.Helper()
	n := s.models[v.Model.Name]
	n.groups++
	n.operations += v.Operations
	if v.OK() {
		return
	}
	n.bad++
	picture, err := v.Save(resultDir)
	if err != nil {
		t.Error(err)
	}
	s.violations = append(s.violations, fmt.Sprintf("%s at %s: porcupine says %s: see %s", v.Model.Name, v.Group, v.Result, picture))
}

// thorough is how long a run has to be for every kind of lock to be lost for certain.
const thorough = 5 * time.Minute

// vacuity returns what the run should have had and did not: then it shows nothing.
func (s summary) vacuity() []string {
	var missing []string
	want := func(ok bool, format string, args ...any) {
		if !ok {
			missing = append(missing, fmt.Sprintf(format, args...))
		}
	}
	want(len(s.faults) >= int(s.length/faultEvery), "%d faults in %v", len(s.faults), s.length)
	did := func(name string) bool {
		return slices.ContainsFunc(s.faults, func(f done) bool { return strings.HasPrefix(f.name, name) })
	}
	want(did(cutName), "no member of the ensemble was cut off from another")
	want(did(deposedName), "no leader was deposed while it was isolated")
	want(did(outageName), "no outage was longer than a session")
	missing = append(missing, s.unmoved()...)
	losses := 0
	for _, name := range slices.Sorted(maps.Keys(s.models)) {
		n := s.models[name]
		losses += n.losses
		want(n.losses > 0 || s.length < thorough, "no %s was ever lost", name)
	}
	want(losses > 0, "no lock was ever lost")
	want(s.succession.Succeeded > 0, "nobody ever succeeded a worker that had lost its session")
	want(s.counts[refusedMixed] > 0, "no worker %s", refusedMixed)
	want(s.stops > 0, "no holder was stopped")
	want(s.registers.Accepted > 0, "nothing was written to the registers")
	byFence, byGuard := s.late()
	want(byFence > 0, "no late write of a stopped holder was refused for its fence")
	want(byGuard > 0, "no late write of a stopped holder was refused for its guard")
	return missing
}

// unmoved returns which locks never went from one worker to another.
func (s summary) unmoved() (missing []string) {
	for _, name := range slices.Sorted(maps.Keys(s.models)) {
		if s.models[name].handovers == 0 {
			missing = append(missing, fmt.Sprintf("the %s never went from one worker to another", name))
		}
	}
	return missing
}

// late returns how many late writes of stopped holders were refused, by the store that checks
// fences and by the lease's guard.
func (s summary) late() (byFence, byGuard int) {
	for register, n := range s.registers.Late {
		if strings.HasPrefix(register, storeRegister) {
			byFence += n
		} else {
			byGuard += n
		}
	}
	return byFence, byGuard
}

func (s summary) String() string {
	var b strings.Builder
	counts := make(map[string]int)
	for _, f := range s.faults {
		counts[f.name]++
	}
	fmt.Fprintf(&b, "members reached each other %s\n", s.network)
	fmt.Fprintf(&b, "faults: %d in %v\n", len(s.faults), s.length)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "  %4d  %s\n", counts[name], name)
	}
	fmt.Fprintf(&b, "%-12s %8s %8s %8s %8s %8s %9s %10s  %s\n",
		"locks", "grants", "no lock", "losses", "killed", "handed", "histories", "operations", "porcupine")
	for _, name := range slices.Sorted(maps.Keys(s.models)) {
		n := s.models[name]
		verdict := "all linearizable"
		if n.bad > 0 {
			verdict = fmt.Sprintf("%d NOT linearizable", n.bad)
		}
		fmt.Fprintf(&b, "%-12s %8d %8d %8d %8d %8d %9d %10d  %s\n",
			name, n.grants, n.refused, n.losses, n.killed, n.handovers, n.groups, n.operations, verdict)
	}
	c := s.succession
	fmt.Fprintf(&b, "losses: %d by the lease clock or an expiry, %d with a successor, least time from loss to its grant %v\n",
		c.Losses, c.Succeeded, c.MinGap.Round(time.Microsecond))
	for _, g := range c.Gaps[:min(len(c.Gaps), nearest)] {
		s.explain(&b, g)
	}
	if len(c.Released) > 0 {
		fmt.Fprintf(&b, "        %d more with a successor that the lease's own release told of, least time %v\n",
			len(c.Released), c.Released[0].Length().Round(time.Microsecond))
	}
	fmt.Fprintf(&b, "        %d of sessions that somebody else closed, %d in stopped workers\n", c.Revoked, c.Stopped)
	byFence, byGuard := s.late()
	fmt.Fprintf(&b, "registers: %d writes accepted, %d refused; late ones of holders that were stopped: %d by fence, %d by guard\n",
		s.registers.Accepted, s.registers.Refused, byFence, byGuard)
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		fmt.Fprintf(&b, "  %6d  times a worker %s\n", s.counts[what], what)
	}
	fmt.Fprintf(&b, "violations: %d in %d grants (porcupine took %v)\n", len(s.violations), len(s.history.Leases), s.took.Round(time.Millisecond))
	return b.String()
}

// nearest is how many gaps between a loss and the next grant are explained, the least
// first.
const nearest = 5

// explain tells all that is known of a gap: both leases, why the first was lost, and
// the faults between the last look at it and the grant.
func (s summary) explain(b *strings.Builder, g history.Gap) {
	lost, next := g.Lost, g.Next
	since := func(at int64) time.Duration { return time.Duration(at - lost.Return).Round(time.Millisecond) }
	fmt.Fprintf(b, "  %v at %s: %s (seen to stand at %v), then %s: %s\n", g.Length().Round(time.Millisecond), lost.Grant.Locks[0].Lock,
		lost.Grant.Lease, since(lost.Alive), next.Grant.Lease, lost.Note)
	for _, f := range s.faults {
		if f.from < next.Grant.Return && lost.Alive < f.to {
			fmt.Fprintf(b, "        from %v to %v: %s: %s\n", since(f.from), since(f.to), f.whom, f.name)
		}
	}
}
