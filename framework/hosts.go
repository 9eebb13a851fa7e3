package framework

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Bounds of the pause after a round of fruitless attempts on all servers. It is
// drawn at random up to a limit that doubles with each round, so that the
// clients of a restarted ensemble do not come back all at once.
const (
	minReconnectPause   = 20 * time.Millisecond
	firstReconnectPause = 200 * time.Millisecond
	maxReconnectPause   = 2 * time.Second
)

// steadyAfter is how long a connection must have lasted for the next attempt to
// begin the first round: a server that accepts connections only to drop them is not
// to be asked in a tight loop.
const steadyAfter = 500 * time.Millisecond

// hosts hands out what to connect to, round after round: each address of each
// server once, in a random order.
type hosts struct {
	resolve Resolver // nil if the dialer takes names; immutable

	mu       sync.Mutex // guards following
	servers  []string
	fallback []string      // servers that are tried after those, from the second round on
	queue    []target      // what is left of the present round
	rounds   int           // begun since the last steady connection
	last     target        // that was handed out last
	linked   time.Time     // when the present connection began to serve, zero if there is none
	ending   bool          // the wire is to end rather than to connect
	renewed  chan struct{} // closed and replaced: it ends a pause and a round
}

func newHosts(servers, fallback []string, resolve Resolver) *hosts {
	return &hosts{resolve: resolve, servers: servers, fallback: fallback, renewed: make(chan struct{})}
}

func shuffled[E any](list []E) []E {
	order := slices.Clone(list)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// replace changes the servers. Attempts on the new ones begin at once.
func (h *hosts) replace(servers, fallback []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers, h.fallback = servers, fallback
	h.renewLocked()
}

// renew begins a first round at once.
func (h *hosts) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.renewLocked()
}

func (h *hosts) renewLocked() {
	h.queue, h.rounds = nil, 0
	close(h.renewed)
	h.renewed = make(chan struct{})
}

// update changes the servers where a round is about to begin.
func (h *hosts) update(servers, fallback []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers, h.fallback, h.queue = servers, fallback, nil
}

// has reports whether t is among the servers.
func (h *hosts) has(t target) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return t.among(h.servers) || t.among(h.fallback)
}

// Init is part of the wire client's interface of a host provider.
func (h *hosts) Init([]string) error { return nil }

// Len is part of it, too.
func (h *hosts) Len() int { return 1 }

// wireHost is what the wire client is told to connect to. It is the dialer that
// knows where to: a name may have to be asked for, which Next must not wait for.
const wireHost = "ensemble"

// Next is part of the wire client's interface. The wire client pauses for a
// second, failing whatever is queued, if it is told that a round begins; so it
// never is, and the dialer pauses instead. Only where the wire ends it is told,
// because there alone it looks whether it was closed.
func (h *hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return wireHost, h.ending
}

// Connected is part of the wire client's interface. It means that a handshake
// was answered, which is not enough to be of use: see serves.
func (h *hosts) Connected() {}

// serves takes note that the connection has begun to be of use.
func (h *hosts) serves() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.linked = time.Now()
}

// end makes the wire client give up connecting.
func (h *hosts) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ending = true
}

// A pause is how long to wait before an attempt.
type pause struct {
	wait    time.Duration
	renewed <-chan struct{} // its end ends the wait
	round   bool            // the attempt begins a round
	again   bool            // and the round before it has failed
}

// pause returns how long to wait before the attempt that comes next.
func (h *hosts) pause() pause {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.linked.IsZero() && time.Since(h.linked) >= steadyAfter {
		h.rounds, h.queue = 0, nil // what its names stand for may have changed meanwhile
	}
	h.linked = time.Time{}
	if len(h.queue) > 0 {
		return pause{renewed: h.renewed}
	}
	h.rounds++
	if h.rounds == 1 {
		return pause{renewed: h.renewed, round: true}
	}
	limit := min(firstReconnectPause<<min(h.rounds-2, 10), maxReconnectPause)
	wait := minReconnectPause + rand.N(limit-minReconnectPause)
	return pause{wait: wait, renewed: h.renewed, round: true, again: true}
}

// next returns what to connect to now. It resolves the server's name if there is
// a resolver: then the first of its addresses is tried now, and the others later
// in the round.
func (h *hosts) next(ctx context.Context) (target, error) {
	t, round, err := h.take()
	if err != nil || h.resolve == nil || t.addr != "" {
		return t, err
	}
	targets, err := t.resolved(ctx, h.resolve)
	if err != nil {
		return t, err
	}
	return h.spread(targets, round), nil
}

// take takes the next target from the queue, which it fills if it is empty. round
// is a token of the servers that it belongs to.
func (h *hosts) take() (t target, round chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		h.fillLocked()
	}
	if len(h.queue) == 0 {
		return target{}, nil, errNoServers
	}
	t, h.queue = h.queue[0], h.queue[1:]
	if h.resolve == nil || t.addr != "" {
		h.last = t
	}
	return t, h.renewed, nil
}

// fillLocked begins a round: the server that was tried last comes last. It needs mu.
func (h *hosts) fillLocked() {
	order := shuffled(h.servers)
	if h.rounds > 1 {
		order = append(order, shuffled(h.fallback)...)
	}
	for _, server := range order {
		if t := (target{server: server}); !slices.Contains(h.queue, t) {
			h.queue = append(h.queue, t)
		}
	}
	h.queue = toEnd(h.queue, func(t target) bool { return t.server == h.last.server })
}

// spread returns the first of a server's targets and keeps the others for the
// end of the round, unless the servers have changed since it began.
func (h *hosts) spread(targets []target, round chan struct{}) target {
	h.mu.Lock()
	defer h.mu.Unlock()
	targets = toEnd(targets, func(t target) bool { return t == h.last })
	if h.renewed == round {
		h.last = targets[0]
		h.queue = append(h.queue, targets[1:]...)
	}
	return targets[0]
}

// toEnd returns list with what matches moved to its end.
func toEnd[E any](list []E, match func(E) bool) []E {
	i := slices.IndexFunc(list, match)
	if i < 0 {
		return list
	}
	moved := list[i]
	return append(slices.Delete(list, i, i+1), moved)
}
