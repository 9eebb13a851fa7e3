package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docent-go/docent/lab/bench/contender"
)

// A team is a contender at a site, whose process is started when it is needed, and
// again when it has died.
type team struct {
	peer     *peer
	site     *site
	versions map[string]string // of all contenders, to enter its own
	process  *process
}

// field returns a process that is connected.
func (t *team) field(ctx context.Context) (*process, error) {
	if t.process != nil {
		return t.process, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	p, err := t.peer.launch(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := p.do(ctx, "connect", strings.Join(t.site.addrs, ","), sessionTimeout.Milliseconds()); err != nil {
		p.kill()
		return nil, errors.Join(err, p.wait())
	}
	t.process = p
	if p.version != "" {
		t.versions[t.peer.name] = p.version
	}
	return p, nil
}

// dismiss ends the process, if there is one.
func (t *team) dismiss() error {
	if t.process == nil {
		return nil
	}
	p := t.process
	t.process = nil
	if err := p.end(); err != nil && !strings.Contains(err.Error(), "killed") {
		return fmt.Errorf("%s: %w", t.peer.name, err)
	}
	return nil
}

// An entrant is a team in one scenario.
type entrant struct {
	team  *team
	plan  plan
	turns []turn
	err   error // why it is out
}

// A turn is what came of one.
type turn struct {
	contender.Answer
	requests int64
	peak     int64 // bytes
	grown    int64 // bytes, from before to when all wait
	client   usage
}

// warmUp plays without measuring, for as many operations as the contender needs.
func (e *entrant) warmUp(ctx context.Context) {
	begun := time.Now()
	for ops := 0; e.err == nil && ctx.Err() == nil; {
		t := e.play(ctx, e.plan, false)
		ops += max(1, t.Ops)
		if ops >= e.team.peer.warm || time.Since(begun) > warmLimit {
			return
		}
	}
}

// turn plays and notes what came of it, in a new process if memory is measured.
func (e *entrant) turn(ctx context.Context, fresh bool) {
	if fresh {
		own := *e.team
		own.process = nil
		team := e.team
		e.team = &own
		defer func() {
			if err := own.dismiss(); err != nil && e.err == nil {
				e.err = err
			}
			e.team = team
		}()
		warmer := e.plan
		if e.plan.load != "cached" { // its tree has as many znodes
			warmer.workers, warmer.path = min(freshWarmer, e.plan.workers), e.plan.path+"-warm"
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
func (e *entrant) play(ctx context.Context, p plan, weigh bool) turn {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	t, err := e.try(ctx, p, weigh)
	if err != nil {
		e.err = err
		if e.team.process != nil { // whatever it is about
			e.team.process.kill()
			e.err = errors.Join(err, e.team.dismiss())
		}
	}
	return t
}

func (e *entrant) try(ctx context.Context, p plan, weigh bool) (t turn, err error) {
	process, err := e.team.field(ctx)
	if err != nil {
		return t, err
	}
	site := e.team.site
	var before int64
	if weigh {
		if before, err = weighed(ctx, process); err != nil {
			return t, err
		}
	}
	if process.pid != 0 {
		if err := resetPeak(process.pid); err != nil {
			return t, err
		}
	}
	requests, err := site.requests(ctx)
	if err != nil {
		return t, err
	}
	used, err := process.used()
	if err != nil {
		return t, err
	}
	t.Answer, err = process.do(ctx, "run", p.load, p.kind, p.path, p.workers, p.ops, site.settle().Milliseconds())
	if err == nil && t.Waiting {
		err = e.proceed(ctx, p, func() error {
			if !weigh {
				return nil
			}
			now, err := weighed(ctx, process)
			t.grown = now - before
			return err
		})
		if err == nil {
			t.Answer, err = process.do(ctx, "go")
		}
	}
	if err != nil {
		return t, err
	}
	after, err := site.requests(ctx)
	if err != nil {
		return t, err
	}
	t.requests = after - requests
	now, err := process.used()
	if err != nil {
		return t, err
	}
	t.client = usage{cpu: now.cpu - used.cpu}
	if process.pid != 0 {
		_, t.peak, err = resident(process.pid)
	}
	return t, err
}

// proceed looks at a run that waits, once all that are to wait do.
func (e *entrant) proceed(ctx context.Context, p plan, look func() error) error {
	site := e.team.site
	if p.load == "queue" {
		if err := site.awaitChildren(ctx, p.path, p.workers+1); err != nil {
			return err
		}
	}
	if err := wait(ctx, 4*site.settle()); err != nil {
		return err
	}
	return look()
}
