package main

import "context"

// weighed returns the process's resident memory without what is garbage, in bytes. One that is no
// process has none.
func weighed(ctx context.Context, p *process) (int64, error) {
	if _, err := p.do(ctx, "gc"); err != nil || p.pid == 0 {
		return 0, err
	}
	now, _, err := resident(p.pid)
	return now, err
}
