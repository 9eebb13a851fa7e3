package main

import (
	"context"
	"time"
)

// A weight is a process's memory without what is garbage, in bytes.
type weight struct{ resident, heap, stack int64 }

// restTime is how long a process is looked at whose locks are all held.
const restTime = 3 * time.Second

// used returns what the process and the servers have used so far.
func (e *entrant) used(p *process) (client, servers usage, err error) {
	if client, err = p.used(); err != nil {
		return client, servers, err
	}
	for _, s := range e.team.site.servers {
		u, err := usageOf(s.Pid())
		if err != nil {
			return client, servers, err
		}
		servers.cpu += u.cpu
	}
	return client, servers, nil
}

// weighed returns the process's memory without what is garbage. One that is no process has no
// resident memory.
func weighed(ctx context.Context, p *process) (w weight, err error) {
	lives, err := p.do(ctx, "gc")
	if err != nil {
		return w, err
	}
	w = weight{heap: lives.Heap - lives.Stack, stack: lives.Stack}
	if p.pid != 0 {
		w.resident, _, err = resident(p.pid)
	}
	return w, err
}

// atRest returns the processor time that the process uses in restTime.
func atRest(ctx context.Context, p *process) (time.Duration, error) {
	before, err := p.used()
	if err != nil {
		return 0, err
	}
	if err := wait(ctx, restTime); err != nil {
		return 0, err
	}
	after, err := p.used()
	return after.cpu - before.cpu, err
}
