package inspect

import (
	"context"
	"time"
)

// A pace spreads requests over time. The zero pace has no bound. One goroutine uses it.
type pace struct {
	rate int // requests per second; 0 for no bound
	free time.Time
}

// wait waits until n requests may be sent.
func (p *pace) wait(ctx context.Context, n int) error {
	if p.rate == 0 {
		return ctx.Err()
	}
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	pause := p.free.Sub(now)
	p.free = p.free.Add(time.Duration(n) * time.Second / time.Duration(p.rate))
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
