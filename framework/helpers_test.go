package framework_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// patience is how long a test waits for what has to happen.
const patience = 20 * time.Second

// connect returns a connected client, closed when the test has ended.
func connect(t testing.TB, servers string, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := newClient(t, servers, opts...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must.OK(t, c.AwaitConnected(ctx))
	return c
}

func newClient(t testing.TB, servers string, opts ...framework.Option) *framework.Client {
	t.Helper()
	opts = append([]framework.Option{framework.WithSessionTimeout(4 * time.Second)}, opts...)
	c := must.Get(framework.NewClient(servers, opts...))(t)
	t.Cleanup(func() { c.Close() }) // tests of Close look at its error themselves
	return c
}

// mustCreate creates a znode, with its parents, and returns its path.
func mustCreate(t testing.TB, c *framework.Client, path, data string, opts ...framework.CreateOption) string {
	t.Helper()
	created := must.Get(c.Create(t.Context(), path, []byte(data), append(opts, framework.WithParents())...))(t)
	return created
}

// mustHold returns a secured hold on the client's session.
func mustHold(t testing.TB, c *framework.Client) *framework.SessionHold {
	t.Helper()
	h, err := c.HoldSession(t.Context())
	if err == nil {
		err = h.Secure(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Release)
	return h
}

// await fails the test unless ch is closed soon.
func await(t testing.TB, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
	}
}

// wantErr fails the test unless err matches all of targets.
func wantErr(t testing.TB, what string, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("%s: error %v, want one that matches %q", what, err, target)
		}
	}
}

// children returns the sorted names of a znode's children.
func children(t testing.TB, c *framework.Client, path string) []string {
	t.Helper()
	names, _ := must.Get2(c.Children(t.Context(), path))(t)
	slices.Sort(names)
	return names
}

// A trail records the states that a client goes through.
type trail struct {
	mu      sync.Mutex
	changes []framework.StateChange
	times   []time.Time
}

func (tr *trail) add(change framework.StateChange) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.changes = append(tr.changes, change)
	tr.times = append(tr.times, time.Now())
}

func (tr *trail) list() []framework.StateChange {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.Clone(tr.changes)
}

func (tr *trail) states() []framework.State {
	var states []framework.State
	for _, change := range tr.list() {
		states = append(states, change.To)
	}
	return states
}

// await waits until the client has gone through n states.
func (tr *trail) await(t testing.TB, want ...framework.State) {
	t.Helper()
	zktest.Eventually(t, patience, "states", func() bool { return len(tr.states()) >= len(want) })
	if got := tr.states(); !slices.Equal(got, want) {
		t.Fatalf("states %v, want %v", got, want)
	}
}

// last returns the latest change to a state.
func (tr *trail) last(to framework.State) framework.StateChange {
	for _, change := range slices.Backward(tr.list()) {
		if change.To == to {
			return change
		}
	}
	return framework.StateChange{}
}

// A gate is a dialer that can be held back.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // closed when the gate opens; nil while it is open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.closed)
	g.closed = nil
}

func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed != nil
}

func (g *gate) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return g.around(new(net.Dialer).DialContext)(ctx, network, addr)
}

// around returns a dialer that waits for the gate and then dials.
func (g *gate) around(dial framework.Dialer) framework.Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if err := g.pass(ctx); err != nil {
			return nil, err
		}
		return dial(ctx, network, addr)
	}
}

// pass waits until the gate is open.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed == nil {
		return nil
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// within returns a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// fresh returns a path that no other run of the test uses.
func fresh(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("/%s-%08x", strings.ReplaceAll(t.Name(), "/", "-"), rand.Uint32())
}
