// Package pace spreads requests over time.
package pace

import (
	"context"
	"time"
)

// A Pace lets a number of requests, or of rounds of a loop, pass each second. The zero Pace has no bound.
// One goroutine uses it.
type Pace struct {
	Rate  int // how many pass in a second; 0 for no bound
	Burst int // how many more pass at once after a rest

	free time.Time // when the next one would pass if Burst were 0
}

// Rounds returns the Pace of a loop that begins again because of what servers or other clients did. A
// loop that makes progress does not notice it. A loop that two replies keep going, because they
// contradict each other for good, would ask as fast as the network allows without it.
func Rounds() Pace { return Pace{Rate: 10, Burst: 16} }

// Wait waits until n more may pass, and returns ctx's error if ctx ends first.
func (p *Pace) Wait(ctx context.Context, n int) error {
	if p.Rate == 0 {
		return ctx.Err()
	}
	now, interval := time.Now(), time.Second/time.Duration(p.Rate)
	rested := now.Add(-interval * time.Duration(p.Burst))
	if p.free.Before(rested) {
		p.free = rested
	}
	pause := p.free.Sub(now)
	p.free = p.free.Add(interval * time.Duration(n))
	if pause <= 0 {
		return ctx.Err()
	}
	return Sleep(ctx, pause)
}

// Sleep returns nil after d, and ctx's error if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Doubled returns first, doubled n times, but at most most: the bound of a pause that grows with each
// failure. A caller makes a part of it random, so that clients do not come back at once.
func Doubled(first, most time.Duration, n int) time.Duration {
	for ; n > 0 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}
