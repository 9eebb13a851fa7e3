package main

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/lab/bench/contender"
)

// An entrant is a peer in one scenario.
type entrant struct {
	*peer
	site  *site
	plan  contender.Plan
	turns []turn
	err   error // why it is out
}

// A turn is what came of one.
type turn struct {
	contender.Answer
	counts
	peak  int64 // bytes
	grown int64 // bytes, from before to when all wait
}

// counts are what a peer has used up.
type counts struct {
	requests int64
	cpu      time.Duration
}

// warmUp plays without measuring, for as many operations as the peer needs.
func (e *entrant) warmUp(ctx context.Context) {
	begun := time.Now()
	for ops := 0; e.err == nil && ctx.Err() == nil; {
		t := e.play(ctx, e.plan, false)
		ops += max(1, t.Ops)
		if ops >= e.warm || time.Since(begun) > warmLimit {
			return
		}
	}
}

// turn plays and notes what came of it, in a new process if memory is measured.
func (e *entrant) turn(ctx context.Context, fresh bool) {
	if fresh {
		own, usual := *e.peer, e.peer
		own.process = nil
		e.peer = &own
		defer func() {
			if err := own.dismiss(); err != nil && e.err == nil {
				e.err = err
			}
			e.peer, usual.version = usual, own.version
		}()
		warmer := e.plan
		if e.plan.Load != "cached" { // its tree has as many znodes
			warmer.Workers, warmer.Path = min(freshWarmer, e.plan.Workers), e.plan.Path+"-warm"
		}
		if e.play(ctx, warmer, false); e.err != nil {
			return
		}
	}
	if t := e.play(ctx, e.plan, fresh); e.err == nil {
		e.turns = append(e.turns, t)
	}
}

// play runs the plan once.
func (e *entrant) play(ctx context.Context, p contender.Plan, weigh bool) turn {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	t, err := e.try(ctx, p, weigh)
	if err != nil {
		e.err = err
		if e.process != nil { // whatever it is about
			e.process.kill()
			e.err = errors.Join(err, e.dismiss())
		}
	}
	return t
}

func (e *entrant) try(ctx context.Context, p contender.Plan, weigh bool) (t turn, err error) {
	process, err := e.field(ctx, e.site.addrs)
	if err != nil {
		return t, err
	}
	var weighed int64
	if weigh {
		if weighed, err = process.weigh(ctx); err != nil {
			return t, err
		}
	}
	if err := process.resetPeak(); err != nil {
		return t, err
	}
	before, err := e.count(ctx, process)
	if err != nil {
		return t, err
	}
	if t.Answer, err = process.do(ctx, p); err == nil && t.Waiting {
		if err = e.awaitAll(ctx, p); err == nil && weigh {
			t.grown, err = process.weigh(ctx)
			t.grown -= weighed
		}
		if err == nil {
			t.Answer, err = process.do(ctx, "go")
		}
	}
	if err != nil {
		return t, err
	}
	after, err := e.count(ctx, process)
	if err != nil {
		return t, err
	}
	t.counts = counts{requests: after.requests - before.requests, cpu: after.cpu - before.cpu}
	_, t.peak, err = process.memory()
	return t, err
}

// count returns what the process, and all before it, have used up so far.
func (e *entrant) count(ctx context.Context, p *process) (c counts, err error) {
	if c.requests, err = e.site.requests(ctx); err != nil || p.pid == 0 {
		return c, err
	}
	c.cpu, err = usageOf(p.pid)
	return c, err
}

// awaitAll returns when all workers of a run that waits do so.
func (e *entrant) awaitAll(ctx context.Context, p contender.Plan) error {
	if p.Load == "queue" {
		if err := e.site.awaitChildren(ctx, p.Path, p.Workers+1); err != nil {
			return err
		}
	}
	return wait(ctx, 4*p.Settle)
}
