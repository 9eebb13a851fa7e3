package sim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
)

// A surrounding is something that its user gives to a client, and that turns hostile from time to time:
// it blocks until all is well again, panics, or calls the client.
type surrounding struct {
	kind string // one of surroundingKinds; immutable
	how  string // immutable
	c    *client

	mu      sync.Mutex
	release chan struct{} // not nil while it is hostile; closed when that ends
	calling bool
}

// surroundingKinds are the kinds of surroundings.
var surroundingKinds = []string{
	"log", "listener", "OnLost", "revocation", "dialer", "resolver", "Read", "Write", "Close", "SetDeadline",
}

// A hostility is a plan for one client's surrounding.
type hostility struct {
	client    int
	kind, how string
}

// hostile gives the plan a client whose surrounding turns hostile while the client is cut off, and at
// times while it is not.
func (p *plan) hostile(seed uint64, kind string) {
	r := rand.New(rand.NewPCG(seed, 99))
	p.hostility = &hostility{r.IntN(len(p.clients)), kind, pick(r, "blocks", "blocks", "blocks", "panics", "calls the client")}
	p.timeout = pick(r, 4*time.Second, 6*time.Second, 10*time.Second)
	p.horizon = 20 * p.timeout
	p.faults = nil
	kinds := []*faultKind{
		sparing(always("hostile surroundings and a client cut off", 0, hostileAnd(func(c *client) { c.line.set(true, false); c.line.cut() }))),
		sparing(always("hostile surroundings and a silent line", 0, hostileAnd(func(c *client) { c.line.set(false, true) }))),
		sparing(always("hostile surroundings", 0, hostileAnd(func(*client) {}))),
	}
	for at := p.timeout; at < p.horizon-2*p.timeout; at += 4 * p.timeout {
		p.faults = append(p.faults, plannedFault{kind: kinds[r.IntN(len(kinds))], at: at + upTo(r, p.timeout), span: p.timeout * 5 / 2, seed: r.Uint64()})
	}
	if r.IntN(2) == 0 {
		p.insist("close a client", p.horizon/2, 0)
	}
	p.insist("set the server's clock", p.horizon/3, 0)
}

func hostileAnd(fault func(*client)) func(env *environment, _ *rand.Rand, span time.Duration) func() {
	return func(env *environment, _ *rand.Rand, span time.Duration) func() {
		c := env.clients[env.plan.hostility.client]
		env.harm(c, span)
		c.around.begin()
		fault(c)
		return func() {
			c.around.end()
			c.line.set(false, false)
			c.line.cut()
		}
	}
}

func (s *surrounding) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.release == nil {
		s.release = make(chan struct{})
	}
}

func (s *surrounding) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.release != nil {
		close(s.release)
		s.release = nil
	}
}

// blocksNow reports whether the surrounding of the kind blocks now.
func (s *surrounding) blocksNow(kind string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.release != nil && s.kind == kind && s.how == "blocks"
}

// act is called where the surrounding of the kind is called. s may be nil.
func (s *surrounding) act(kind string) {
	if s == nil || s.kind != kind {
		return
	}
	s.mu.Lock()
	release := s.release
	first := release != nil && !s.calling
	s.calling = s.calling || first
	s.mu.Unlock()
	if release == nil {
		return
	}
	s.c.env.count("hostile "+kind, 1)
	switch s.how {
	case "blocks":
		<-release
	case "panics":
		panic("by the surroundings")
	default:
		if first { // else it would call itself
			s.callBack()
		}
	}
}

func (s *surrounding) callBack() {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calling = false
	}()
	f := s.c.current()
	if f == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.c.env.ctx, time.Second)
	defer cancel()
	_, _, _ = f.Children(ctx, "/") // that it returns is the test
	f.State()
}

// options are what a hostile client has in addition. s may be nil.
func (s *surrounding) options() []framework.Option {
	if s == nil {
		return nil
	}
	return []framework.Option{
		framework.WithStateListener(func(framework.StateChange) { s.act("listener") }),
		framework.WithResolver(func(_ context.Context, host string) ([]string, error) {
			s.act("resolver")
			return []string{host}, nil
		}),
	}
}

// holds takes a hold whose functions are the surrounding.
func (s *surrounding) holds(f *framework.Client) {
	if s == nil || s.kind != "OnLost" {
		return
	}
	s.c.env.tasks.Go(func() { // ends with its context, or the client
		h, err := f.HoldSession(s.c.env.ctx)
		if err == nil {
			h.OnLost(func(error) { s.act("OnLost") })
			h.AfterLost(func() { s.act("OnLost") })
		}
	})
}

// A surroundingConn is a connection whose methods are the surrounding.
type surroundingConn struct {
	net.Conn
	s *surrounding
}

func (c surroundingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.s.act("Read")
	return n, err
}

func (c surroundingConn) Write(p []byte) (int, error) {
	c.s.act("Write")
	return c.Conn.Write(p)
}

func (c surroundingConn) Close() error {
	c.s.act("Close")
	return c.Conn.Close()
}

func (c surroundingConn) SetReadDeadline(at time.Time) error {
	c.s.act("SetDeadline")
	return c.Conn.SetReadDeadline(at)
}

func (c surroundingConn) SetWriteDeadline(at time.Time) error {
	c.s.act("SetDeadline")
	return c.Conn.SetWriteDeadline(at)
}

// dialer returns what the framework.Client with the record connects by.
func (c *client) dialer(rec *record) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c.around.act("dialer")
		conn, err := c.line.dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn = &introduced{Conn: conn, env: c.env, who: rec}
		if c.around == nil {
			return conn, nil
		}
		return surroundingConn{conn, c.around}, nil
	}
}

// A surroundingCore is a log whose sink is the surrounding.
type surroundingCore struct {
	zapcore.Core
	s *surrounding
}

func (c surroundingCore) Check(entry zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return ce.AddCore(entry, c)
}

func (c surroundingCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	c.s.act("log")
	return c.Core.Write(entry, fields)
}

// longestClose is how long Close may take whatever its surroundings do: see framework.Client.Close.
const longestClose = 20 * time.Second

// TestHostileSurroundings runs schedules with a client whose surroundings turn hostile, for each kind
// of surrounding.
func TestHostileSurroundings(t *testing.T) {
	met := map[string]int{}
	for i, kind := range surroundingKinds {
		seed := uint64(1000 * i)
		for range hostileSeeds {
			p := newPlan(seed)
			for seed++; len(p.recipes) > 0; seed++ { // locks only: their validators allow for a slow log
				p = newPlan(seed)
			}
			p.hostile(seed, kind)
			env := simulate(t, newEnvironment(p, bug{}))
			if err := env.err(); err != nil {
				t.Fatalf("%s, seed %d: %v\n\n%s", kind, seed, err, tail(env.trace()))
			}
			addCounts(met, env.counts)
		}
		if met["hostile "+kind] == 0 {
			t.Errorf("never met: a hostile %s", kind)
		}
	}
	t.Logf("%d schedules\n%s", hostileSeeds*len(surroundingKinds), render(met))
}

// hostileSeeds are the schedules for each kind of surrounding.
const hostileSeeds = 12

// surroundingBugs are clients that end their leases only after they have called a surrounding.
func surroundingBugs() []deliberate {
	var all []deliberate
	for _, kind := range surroundingKinds {
		all = append(all, deliberate{
			lossFirst, fmt.Sprintf("a lease is lost only when its client's surrounding %q has returned", kind), "neither lost nor released",
			func() bug {
				return bug{
					unlost: func(s *lockRecord) bool { return s.record.client.around.blocksNow(kind) },
					plan:   func(p *plan) { p.hostile(uint64(p.horizon), kind); p.hostility.how = "blocks" },
				}
			},
		})
	}
	return slices.Clip(all)
}
