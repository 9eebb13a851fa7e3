// Package hosts returns the targets to which a session connects: each address of each
// server once, in a random order, round after round.
package hosts

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/pace"
)

// Bounds of the pause after a round of failed attempts on all servers. The pause is random up to a
// limit, which doubles with each round. So the clients of a restarted ensemble do not all come back
// at once.
const (
	minReconnectPause   = 20 * time.Millisecond
	firstReconnectPause = 200 * time.Millisecond
	maxReconnectPause   = 2 * time.Second
)

// steadyAfter is how long a connection must have lasted for the next attempt to begin the first
// round. Some servers accept connections only to drop them; the client must not dial those in a
// tight loop.
const steadyAfter = 500 * time.Millisecond

// A List returns targets to connect to, round after round: each address of each server once, in a
// random order.
type List struct {
	resolve Resolver // nil if the dialer takes names; immutable

	mu           sync.Mutex // guards following
	servers      []string
	fallback     []string      // tried after servers, from the second round on
	queue        []Target      // the rest of the present round
	rounds       int           // begun since the last steady connection
	last         Target        // the target that was returned last
	servingSince time.Time     // when the present connection began to serve, zero if there is none
	renewed      chan struct{} // closed and replaced: it ends a pause and a round
}

// New returns a List of the servers. resolve is nil if the dialer takes names.
func New(servers, fallback []string, resolve Resolver) *List {
	return &List{resolve: resolve, servers: servers, fallback: fallback, renewed: make(chan struct{})}
}

// Replace changes the servers. Attempts on the new servers begin at once.
func (h *List) Replace(servers, fallback []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers, h.fallback = servers, fallback
	h.renewLocked()
}

// Renew begins a first round at once.
func (h *List) Renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.renewLocked()
}

func (h *List) renewLocked() {
	h.queue, h.rounds = nil, 0
	close(h.renewed)
	h.renewed = make(chan struct{})
}

// Update changes the servers if a round is about to begin.
func (h *List) Update(servers, fallback []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers, h.fallback, h.queue = servers, fallback, nil
}

// Has reports whether t is among the servers.
func (h *List) Has(t Target) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return t.Among(h.servers) || t.Among(h.fallback)
}

// Serves records that the connection serves.
func (h *List) Serves() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servingSince = time.Now()
}

// A Pause is the wait before an attempt.
type Pause struct {
	Wait    time.Duration
	Renewed <-chan struct{} // closed to end the wait
	Round   bool            // the attempt begins a round
	Again   bool            // and the round before it failed
}

// Pause returns the wait before the next attempt. It draws the wait from a range that ends at most,
// unless that is 0. A wait that was drawn from a longer range and then cut would be the same for
// most clients, and they would all come back at once.
func (h *List) Pause(most time.Duration) Pause {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.servingSince.IsZero() && time.Since(h.servingSince) >= steadyAfter {
		h.rounds, h.queue = 0, nil // the addresses of its names may have changed
	}
	h.servingSince = time.Time{}
	if len(h.queue) > 0 {
		return Pause{Renewed: h.renewed}
	}
	h.rounds++
	if h.rounds == 1 {
		return Pause{Renewed: h.renewed, Round: true}
	}
	limit := pace.Doubled(firstReconnectPause, maxReconnectPause, h.rounds-2)
	if most > 0 {
		limit = min(limit, most)
	}
	least := min(minReconnectPause, limit/2)
	wait := least + rand.N(limit-least)
	return Pause{Wait: wait, Renewed: h.renewed, Round: true, Again: true}
}

// NextTarget returns the target of the next attempt. If there is a resolver, it resolves the
// server's name: the first address is tried now, and the others later in the round.
func (h *List) NextTarget(ctx context.Context) (Target, error) {
	t, round, err := h.take()
	if err != nil || h.resolve == nil || t.Addr != "" {
		return t, err
	}
	targets, err := t.Resolved(ctx, h.resolve)
	if err != nil {
		return t, err
	}
	return h.spread(targets, round), nil
}

// take takes the next Target from the queue, which it fills if it is empty. round identifies the
// servers to which the Target belongs.
func (h *List) take() (t Target, round chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		h.fillLocked()
	}
	if len(h.queue) == 0 {
		return Target{}, nil, ErrNoServers
	}
	t, h.queue = h.queue[0], h.queue[1:]
	if h.resolve == nil || t.Addr != "" {
		h.last = t
	}
	return t, h.renewed, nil
}

// fillLocked begins a round: the server that was tried last comes last. It needs mu.
func (h *List) fillLocked() {
	order := Shuffled(h.servers)
	if h.rounds > 1 {
		order = append(order, Shuffled(h.fallback)...)
	}
	for _, server := range order {
		if t := (Target{Server: server}); !slices.Contains(h.queue, t) {
			h.queue = append(h.queue, t)
		}
	}
	h.queue = toEnd(h.queue, func(t Target) bool { return t.Server == h.last.Server })
}

// spread returns the first of a server's targets. It keeps the others for the end of the round,
// unless the servers have changed since the round began.
func (h *List) spread(targets []Target, round chan struct{}) Target {
	h.mu.Lock()
	defer h.mu.Unlock()
	targets = toEnd(targets, func(t Target) bool { return t == h.last })
	if h.renewed == round {
		h.last = targets[0]
		h.queue = append(h.queue, targets[1:]...)
	}
	return targets[0]
}

// toEnd returns list with the matching elements moved to its end.
func toEnd[E any](list []E, match func(E) bool) []E {
	i := slices.IndexFunc(list, match)
	if i < 0 {
		return list
	}
	moved := list[i]
	return append(slices.Delete(list, i, i+1), moved)
}
