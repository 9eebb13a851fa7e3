package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// enoughOps is how many operations a point is measured by, where its size alone makes fewer. The
// processor time of processes is known in steps of 10 ms.
const enoughOps = 100

// longStep is the time after which a step begins no further round: it has many operations then.
const longStep = 20 * time.Second

// manyRounds is how often a small size is measured at the most.
const manyRounds = 20

// A point is what one contender has shown at one size.
type point struct {
	figures

	Size      int     `json:"size"`
	ClientCPU float64 `json:"clientCPU"` // nanoseconds an operation
	ServerCPU float64 `json:"serverCPU"` // of all servers
	Sent      float64 `json:"sent"`      // bytes an operation
	Received  float64 `json:"received"`
	Heap      float64 `json:"heap"`   // bytes a unit, while all wait
	Stack     float64 `json:"stack"`  // of goroutines
	AtRest    float64 `json:"atRest"` // share of a processor, while all are held
}

// A climb is what one contender has shown of a curve.
type climb struct {
	Contender string  `json:"contender"`
	Points    []point `json:"points"`
	Ended     string  `json:"ended,omitempty"` // why there are no larger sizes
}

// A curveResult is what all have shown of a curve in a setting.
type curveResult struct {
	Setting string  `json:"setting"`
	Name    string  `json:"name"`
	Title   string  `json:"title"`
	Unit    string  `json:"unit"`
	Climbs  []climb `json:"climbs"`
}

// scale runs the curves in all settings.
func (b *bench) scale(ctx context.Context, curves []curve, limit int) ([]curveResult, error) {
	var results []curveResult
	for _, s := range b.settings {
		for _, c := range curves {
			fmt.Fprintf(b.log, "== %v: %s\n", s, c.name)
			r, err := b.climb(ctx, s, c, limit)
			results = append(results, r) // also the points before an interruption
			if err != nil {
				return results, fmt.Errorf("%v: %s: %w", s, c.name, err)
			}
		}
	}
	return results, nil
}

// climb measures a curve on servers of its own: no curve finds the znodes of another one.
func (b *bench) climb(ctx context.Context, s setting, c curve, limit int) (_ curveResult, err error) {
	result := curveResult{Setting: s.String(), Name: c.name, Title: c.title, Unit: c.unit}
	site, err := openSite(ctx, s)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, site.close()) }()
	var teams []*team
	for _, p := range b.peers {
		if p.skip == nil && c.kinds[p.name] != "" {
			teams = append(teams, &team{peer: p, site: site, versions: make(map[string]string)})
			result.Climbs = append(result.Climbs, climb{Contender: p.name})
		}
	}
	defer func() {
		for _, t := range teams {
			err = errors.Join(err, t.dismiss())
		}
	}()
	for _, size := range c.sizes(limit) {
		sc := c.at(size)
		if sc.tree {
			if err := site.makeTree(sc.treePath(), size); err != nil {
				return result, err
			}
		}
		for i, t := range teams {
			if own := &result.Climbs[i]; own.Ended == "" {
				b.step(ctx, own, t, sc, size)
			}
		}
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
	}
	return result, nil
}

// step adds a point to the climb, or ends it.
func (b *bench) step(ctx context.Context, own *climb, t *team, sc scenario, size int) {
	e := &entrant{team: t, plan: sc.planFor(t.peer.name, sc.kinds[t.peer.name]), weigh: sc.isGated(), atRest: sc.load == "hold" && !b.quick}
	t.site.delay(false)
	if len(own.Points) == 0 {
		warmer := *e
		warmer.plan.load, warmer.plan.workers, warmer.plan.ops = "sequence", 1, enoughOps
		if !sc.tree {
			warmer.warmUp(ctx)
			e.err = warmer.err
		}
	}
	t.site.delay(true)
	rounds := max(b.rounds, min(manyRounds, enoughOps/e.plan.ops))
	if !sc.isGated() {
		rounds = b.rounds
	}
	began := time.Now()
	for range rounds {
		if e.err == nil && ctx.Err() == nil && time.Since(began) < longStep {
			e.turn(ctx, false)
			e.atRest = false // once is enough
		}
	}
	if e.err == nil && len(e.turns) == 0 {
		e.err = ctx.Err()
	}
	if e.err != nil {
		own.Ended = fmt.Sprintf("at %d: %v", size, e.err)
		fmt.Fprintf(b.log, "   %s ended %s\n", own.Contender, own.Ended)
		return
	}
	p := pointOf(e, size)
	own.Points = append(own.Points, p)
	fmt.Fprintf(b.log, "   %-13s %6d  %s\n", own.Contender, size, short(p.cost(true)))
}

// pointOf sums up an entrant's turns at a size.
func pointOf(e *entrant, size int) point {
	p := point{figures: figuresOf(e), Size: size}
	var ops, client, server, sent, received float64
	var heaps, stacks []float64
	for _, t := range e.turns {
		ops += float64(t.Ops)
		client += float64(t.client.cpu)
		server += float64(t.servers.cpu)
		sent += float64(t.client.out)
		received += float64(t.client.in)
		heaps = append(heaps, float64(t.lives.heap)/float64(size))
		stacks = append(stacks, float64(t.lives.stack)/float64(size))
		p.AtRest = max(p.AtRest, float64(t.rest)/float64(restTime))
	}
	p.ClientCPU, p.ServerCPU, p.Sent, p.Received = client/ops, server/ops, sent/ops, received/ops
	p.Heap, p.Stack = median(heaps), median(stacks)
	return p
}
