package framework

import (
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
// count as the first: a server that accepts connections only to drop them is not
// to be asked in a tight loop.
const steadyAfter = 500 * time.Millisecond

// hosts hands out servers in a random order, round after round. Names stay
// names: they are resolved by the dialer, at each connection, one by one.
type hosts struct {
	mu      sync.Mutex // guards following
	servers []string
	next    int
	tried   int           // attempts since the last steady connection
	linked  time.Time     // when the present connection began to serve, zero if there is none
	ending  bool          // the wire is to end rather than to connect
	renewed chan struct{} // closed and replaced with the servers: it ends a pause
}

func newHosts(servers []string) *hosts {
	return &hosts{servers: shuffled(servers), renewed: make(chan struct{})}
}

func shuffled(servers []string) []string {
	order := slices.Clone(servers)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

func (h *hosts) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.servers)
}

// replace changes the servers and reports whether current is not among them.
// Attempts on the new ones begin at once.
func (h *hosts) replace(servers []string, current string) (gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers, h.next, h.tried = shuffled(servers), 0, 0
	close(h.renewed)
	h.renewed = make(chan struct{})
	return !slices.Contains(servers, current)
}

// Init is part of the wire client's interface of a host provider.
func (h *hosts) Init([]string) error { return nil }

// Len returns the number of servers.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next returns the next server. The wire client pauses for a second, failing
// whatever is queued, if it is told that a round begins; so it never is, and
// the dialer pauses instead. Only where the wire ends it is told, because there
// alone it looks whether it was closed.
func (h *hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next%len(h.servers)]
	h.next++
	return server, h.ending
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

// pause returns how long to wait before the attempt that comes next, unless
// renewed is closed earlier.
func (h *hosts) pause() (wait time.Duration, renewed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.linked.IsZero() && time.Since(h.linked) >= steadyAfter {
		h.tried = 0
	}
	h.linked = time.Time{}
	round := h.tried / len(h.servers)
	startsRound := h.tried%len(h.servers) == 0
	h.tried++
	if round == 0 || !startsRound {
		return 0, h.renewed
	}
	limit := min(firstReconnectPause<<min(round-1, 10), maxReconnectPause)
	return minReconnectPause + rand.N(limit-minReconnectPause), h.renewed
}
