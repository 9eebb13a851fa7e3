package lock

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// gates admit one attempt or lease of a client at a time to an unfair mutex's znode. Within a
// process, contenders queue at the gate without any request. If the outcome of a create is unknown,
// a znode of the client's session can only be that of the attempt at the gate.
type gates struct {
	mu     sync.Mutex
	byPath map[string]*gate // gates that are occupied or waited for
}

// A gate is the right to contend for one path.
type gate struct {
	gates    *gates
	path     string                            // in the ensemble
	turn     chan struct{}                     // capacity 1: full while the gate is occupied
	occupant atomic.Pointer[telemetry.Acquire] // the latest attempt at the gate, for telemetry
	wanted   int                               // calls that occupy the gate or wait; guarded by gates.mu
}

type gatesKey struct{}

// gatesOf returns the gates of c's client.
func gatesOf(c *framework.Client) *gates {
	return c.Shared(gatesKey{}, func() any { return &gates{byPath: make(map[string]*gate)} }).(*gates)
}

// take waits for the path's gate until ctx ends. With try it does not wait, and returns ErrHeld.
// waited reports whether another attempt occupied the gate.
func (s *gates) take(ctx context.Context, path string, try bool, seen *telemetry.Acquire) (_ *gate, waited bool, err error) {
	g := s.want(path)
	taken := false
	defer func() {
		if !taken { // also if a user's function panicked
			g.forget()
		}
	}()
	select {
	case g.turn <- struct{}{}:
		taken = true
		g.occupant.Store(seen)
		return g, false, nil
	default:
	}
	if try {
		return nil, false, ErrHeld
	}
	seen.Waits(telemetry.NoQueue)
	seen.BehindAcquire(g.occupant.Load())
	select {
	case g.turn <- struct{}{}:
		taken = true
		g.occupant.Store(seen)
		return g, true, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

func (s *gates) want(path string) *gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.byPath[path]
	if g == nil {
		g = &gate{gates: s, path: path, turn: make(chan struct{}, 1)}
		s.byPath[path] = g
	}
	g.wanted++
	return g
}

// leave opens the gate for the call that has waited longest.
func (g *gate) leave() {
	<-g.turn
	g.forget()
}

func (g *gate) forget() {
	g.gates.mu.Lock()
	defer g.gates.mu.Unlock()
	if g.wanted--; g.wanted == 0 {
		delete(g.gates.byPath, g.path)
	}
}
