// Package gate holds bytes back that pass through a test's network.
package gate

import (
	"context"
	"sync"
)

// A Gate is open or shut. Its methods may be called concurrently.
type Gate struct {
	mu   sync.Mutex    // guards following
	open chan struct{} // closed while the gate is open; replaced when it is shut again
}

// New returns an open gate.
func New() *Gate {
	g := &Gate{open: make(chan struct{})}
	close(g.open)
	return g
}

// Set opens or shuts the gate.
func (g *Gate) Set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		if !open {
			g.open = make(chan struct{})
		}
	default:
		if open {
			close(g.open)
		}
	}
}

// Pass waits until the gate is open. It returns ctx's error if ctx ends first.
func (g *Gate) Pass(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
