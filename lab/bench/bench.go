package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/docent-go/docent/lab/bench/contender"
)

const (
	turnLimit   = 2 * time.Minute // of one contender's turn
	warmLimit   = 3 * time.Second // after which warming up is not begun again
	startLimit  = time.Minute     // of a contender's start
	freshWarmer = 10              // workers that load the code of a new process
)

// A bench is what is to be measured.
type bench struct {
	settings  []setting
	scenarios []scenario
	rounds    int
	quick     bool
	peers     []*peer
	log       io.Writer // progress
}

func (b *bench) run(ctx context.Context) (*report, error) {
	r := newReport(ctx, b)
	for _, p := range b.peers {
		if p.skip != nil {
			r.Skipped = append(r.Skipped, fmt.Sprintf("%s: %v: %v", p.name, errSkipped, p.skip))
			fmt.Fprintf(b.log, "*** %s\n", r.Skipped[len(r.Skipped)-1])
		}
	}
	for _, s := range b.settings {
		fmt.Fprintf(b.log, "== %v\n", s)
		result, err := b.measure(ctx, s, r)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", s, err)
		}
		r.Settings = append(r.Settings, result)
	}
	return r, nil
}

// measure runs all scenarios in one setting.
func (b *bench) measure(ctx context.Context, s setting, r *report) (_ settingResult, err error) {
	site, err := openSite(ctx, s)
	if err != nil {
		return settingResult{}, err
	}
	defer func() { err = errors.Join(err, site.close()) }()
	r.Versions["ZooKeeper"] = site.version
	result := settingResult{Setting: s.String()}
	site.delay(true)
	trip, err := site.roundTrip(ctx)
	if err != nil {
		return result, err
	}
	result.RoundTrip = int64(trip)

	defer func() {
		for _, p := range b.peers {
			err = errors.Join(err, p.dismiss())
		}
	}()
	for _, sc := range b.scenarios {
		fmt.Fprintf(b.log, "   %-18s", sc.name)
		begun := time.Now()
		scenario, err := b.play(ctx, sc, site)
		if err != nil {
			return result, fmt.Errorf("%s: %w", sc.name, err)
		}
		result.Scenarios = append(result.Scenarios, scenario)
		fmt.Fprintf(b.log, "%6.1f s\n", time.Since(begun).Seconds())
	}
	for _, p := range b.peers {
		if p.version != "" {
			r.Versions[p.name] = p.version
		}
	}
	return result, nil
}

// play has all that take part play one scenario, in turns. A contender that fails is out
// of the scenario, which is said in its figures; an error is for the end of ctx.
func (b *bench) play(ctx context.Context, sc scenario, site *site) (scenarioResult, error) {
	sc = b.scaled(sc, site.setting)
	var in []*entrant
	for _, p := range b.peers {
		if kind := sc.kinds[p.name]; p.skip == nil && kind != "" {
			in = append(in, &entrant{peer: p, site: site, plan: sc.planFor(p.name, kind, site.settle())})
		}
	}
	if sc.tree {
		if err := site.makeTree(sc.treePath(), sc.workers); err != nil {
			return scenarioResult{}, err
		}
	}
	if !sc.fresh {
		site.delay(false)
		for _, e := range in {
			e.warmUp(ctx)
		}
	}
	site.delay(true)
	rounds := b.rounds
	if sc.rounds > 0 {
		rounds = min(rounds, sc.rounds)
	}
	for round := range rounds {
		for i := range in {
			e := in[(i+round)%len(in)]
			if e.err == nil && ctx.Err() == nil {
				e.turn(ctx, sc.fresh)
				site.delay(true) // empties the proxies' logs
			}
		}
	}
	return summarize(sc, site.setting, in), ctx.Err()
}

// scaled makes runs shorter where each operation is longer, or no figures are wanted.
func (b *bench) scaled(sc scenario, s setting) scenario {
	divisor := 1
	if sc.load != "reentry" {
		if s.rtt > 0 {
			divisor = 5
		}
		if s.mode == ensemble {
			divisor *= 2
		}
	}
	if b.quick {
		divisor *= 10
		if sc.isGated() || sc.tree {
			sc.workers = max(1, sc.workers/20)
		}
	}
	least := min(sc.ops, sc.workers)
	if sc.tree {
		least = 1
	}
	sc.ops = max(least, sc.ops/divisor)
	return sc
}

// treePath is where all contenders have their tree.
func (s scenario) treePath() string { return "/bench/" + s.name }

// planFor returns what the contender of the name has to do.
func (s scenario) planFor(name, kind string, settle time.Duration) contender.Plan {
	own := name
	if name == before {
		own = "before" // as long as docent: the length of a path counts
	}
	p := contender.Plan{
		Load: cmp.Or(s.loads[name], s.load), Kind: kind, Path: "/bench/" + s.name + "/" + own,
		Workers: s.workers, Ops: s.ops, Settle: settle,
	}
	if s.tree {
		p.Path = s.treePath()
	}
	if p.Load == "sequence" {
		p.Workers = 1
	}
	return p
}

// newReport returns a report with what doesn't depend on the settings.
func newReport(ctx context.Context, b *bench) *report {
	return &report{
		Date: time.Now().UTC().Format(time.DateTime), Machine: describeMachine(), Rounds: b.rounds, Quick: b.quick,
		Versions: map[string]string{docent: commit(ctx), "Go": runtime.Version()},
	}
}
