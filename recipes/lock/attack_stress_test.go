package lock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// A line is one client's way to the servers, which can be cut without others noticing.
type line struct {
	srv *zkserver.Server

	mu      sync.Mutex
	refuses bool
	swallow bool // what is sent arrives nowhere, and nobody is told
	conns   map[*lineConn]struct{}
}

type lineConn struct {
	net.Conn
	line *line
}

func (l *line) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuses {
		return nil, syscall.ECONNREFUSED
	}
	conn, err := l.srv.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &lineConn{conn, l}
	l.conns[c] = struct{}{}
	return c, nil
}

func (l *line) set(refuses, swallow bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuses, l.swallow = refuses, swallow
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Conn.Close()
	}
	clear(l.conns)
}

func (l *line) swallows() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.swallow
}

func (c *lineConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.line.swallows() {
			return n, err
		}
	}
}

func (c *lineConn) Write(p []byte) (int, error) {
	if c.line.swallows() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// An attack is one seeded run of many contenders, whose connections, server and contexts
// fail at random.
type attack struct {
	t       *testing.T
	srv     *zkserver.Server
	lines   []*line
	asks    bool // holders' leases are asked at each grant; else they have to tell by themselves
	brutal  bool // sessions are expired and znodes deleted by an operator: overlaps are legitimate
	timeout time.Duration

	mu     sync.Mutex
	fences map[string]fenced
	live   map[string][]*stake
	all    []*stake
	counts map[string]int
}

type fenced struct {
	number int64
	party  any
}

// A stake is a lease that was seen to be held, and what became of it.
type stake struct {
	path      string
	party     any
	node      string
	lease     *lock.Lease
	granted   time.Time
	left      time.Time // when Release was called
	lost      time.Time // when Lost was seen closed
	abandoned chan struct{}
}

func (s *stake) end() time.Time {
	switch {
	case s.left.IsZero():
		return s.lost
	case !s.lost.IsZero() && s.lost.Before(s.left):
		return s.lost
	}
	return s.left
}

func (a *attack) count(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[what]++
}

func (a *attack) enter(path string, party any, l *lock.Lease, granted time.Time) *stake {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &stake{path: path, party: party, node: l.Node(), lease: l, granted: granted, abandoned: make(chan struct{})}
	if l.Err() == nil {
		for _, other := range a.live[path] {
			if a.asks && other.party != party && other.lease.Err() == nil && l.Err() == nil && !a.brutal {
				a.t.Errorf("two holders of %s at %v: %v by %s and %v by %s", path, time.Now(), party, l.Node(), other.party, other.lease.Node())
			}
		}
		fence, _ := l.Fence(context.Background())
		if last := a.fences[path]; fence < last.number || fence == last.number && party != last.party {
			if l.Err() == nil && !a.brutal {
				a.t.Errorf("fence %d of %v at %s after %d of %v", fence, party, path, last.number, last.party)
			}
		}
		if a.fences[path].number < fence {
			a.fences[path] = fenced{fence, party}
		}
		a.counts["granted"]++
	} else {
		a.counts["granted and lost at once"]++
	}
	a.live[path] = append(a.live[path], s)
	a.all = append(a.all, s)
	go func() {
		select {
		case <-l.Lost():
			a.mu.Lock()
			s.lost = time.Now()
			a.counts["lost"]++
			a.mu.Unlock()
		case <-s.abandoned:
		}
	}()
	return s
}

func (a *attack) leave(s *stake) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.left = time.Now()
	live := a.live[s.path]
	for i, other := range live {
		if other == s {
			a.live[s.path] = append(live[:i:i], live[i+1:]...)
			break
		}
	}
}

// overlaps reports stakes of different parties that overlapped in time.
func (a *attack) overlaps() {
	if a.brutal {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, s := range a.all {
		for _, other := range a.all[i+1:] {
			if s.path != other.path || s.party == other.party || s.node == other.node {
				continue
			}
			if s.granted.Before(other.end()) && other.granted.Before(s.end()) {
				a.t.Errorf("overlap at %s: %v held %v..%v (lost %v), %v held %v..%v (lost %v)", s.path,
					s.node, s.granted, s.end(), s.lost, other.node, other.granted, other.end(), other.lost)
			}
		}
	}
}

func (a *attack) classify(op string, err error) {
	switch {
	case err == nil:
		a.count(op + ": nil")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		a.count(op + ": context")
	case errors.Is(err, lock.ErrHeld):
		a.count(op + ": held")
	case errors.Is(err, lock.ErrLost):
		a.count(op + ": lost")
	case errors.Is(err, lock.ErrReleased):
		a.count(op + ": released")
	case errors.Is(err, framework.ErrClosed):
		a.count(op + ": closed")
	case errors.Is(err, framework.ErrNotConnected):
		a.count(op + ": not connected")
	case errors.Is(err, framework.ErrUnknownOutcome):
		a.count(op + ": unknown outcome")
	default:
		a.count(op + ": other: " + err.Error())
		a.t.Errorf("%s: unexpected error %v", op, err)
	}
}

// bounded checks that a call returned when its context ended.
func (a *attack) bounded(op string, ctx context.Context, began time.Time) {
	if deadline, ok := ctx.Deadline(); ok {
		if late := time.Since(deadline); late > time.Millisecond && time.Since(began) > time.Millisecond {
			a.t.Errorf("%s returned %v after its context ended", op, late)
		}
	}
}

func (a *attack) context(r *rand.Rand, limit time.Duration) (context.Context, context.CancelFunc) {
	var span time.Duration
	switch r.IntN(6) {
	case 0:
	case 1:
		span = time.Duration(r.Int64N(int64(5 * time.Millisecond)))
	case 2:
		span = time.Duration(r.Int64N(int64(300 * time.Millisecond)))
	default:
		span = time.Duration(r.Int64N(int64(limit)))
	}
	if os.Getenv("ATTACK_CAUSES") == "" || r.IntN(2) == 0 {
		return context.WithTimeout(context.Background(), span)
	}
	causes := slices.Collect(maps.Values(endedBy))
	return context.WithTimeoutCause(context.Background(), span, causes[r.IntN(len(causes))])
}

// work locks and releases n times.
func (a *attack) work(r *rand.Rand, m *lock.Mutex, party any, owner *lock.Owner, n int) {
	var held []*stake
	release := func() {
		i := r.IntN(len(held))
		s := held[i]
		held = append(held[:i], held[i+1:]...)
		ctx, cancel := a.context(r, 2*a.timeout)
		defer cancel()
		a.leave(s)
		began := time.Now()
		err := s.lease.Release(ctx)
		a.bounded("release", ctx, began)
		a.classify("release", err)
		close(s.abandoned)
	}
	for range n {
		ctx, cancel := a.context(r, 4*a.timeout)
		if owner != nil {
			ctx = lock.ContextWithOwner(ctx, *owner)
		}
		began := time.Now()
		var l *lock.Lease
		var err error
		op := "lock"
		if r.IntN(3) == 0 {
			op = "try"
			l, err = m.TryLock(ctx)
		} else {
			l, err = m.Lock(ctx)
		}
		granted := time.Now()
		a.bounded(op, ctx, began)
		a.classify(op, err)
		cancel()
		if err == nil {
			held = append(held, a.enter(m.Path(), party, l, granted))
		}
		if len(held) > 0 {
			hold := time.Duration(r.Int64N(int64(a.timeout)))
			switch r.IntN(6) {
			case 0, 1, 2:
				hold = time.Duration(r.Int64N(int64(60 * time.Millisecond)))
			case 3:
				hold *= 4
			}
			await(hold)
			if r.IntN(3) > 0 || len(held) > 2 {
				release()
			}
		} else {
			await(time.Duration(r.Int64N(int64(200 * time.Millisecond))))
		}
	}
	for len(held) > 0 {
		release()
	}
}

var attackedOps = []fault.Op{
	fault.Create, fault.Create, fault.Delete, fault.Delete, fault.Exists, fault.GetData, fault.GetChildren, fault.GetChildren,
	fault.Sync, fault.Ping, fault.Connect, fault.Connect, fault.Event, fault.CloseSession, 0,
}

// harm does one thing to the server or what passes, and mends it later.
func (a *attack) harm(r *rand.Rand) {
	span := time.Duration(r.Int64N(int64(a.timeout * 5 / 2)))
	if r.IntN(2) == 0 {
		span = time.Duration(r.Int64N(int64(a.timeout / 4)))
	}
	fe := a.srv.Frontend(r.IntN(len(a.srv.Frontends())))
	if r.IntN(3) == 0 {
		l := a.lines[r.IntN(len(a.lines))]
		switch r.IntN(4) {
		case 0:
			l.cut()
			return
		case 1:
			l.set(false, true)
		default:
			l.set(true, false)
			l.cut()
		}
		await(span)
		l.set(false, false)
		l.cut()
		return
	}
	switch k := r.IntN(20); {
	case k < 11:
		rule := fault.Rule{Op: attackedOps[r.IntN(len(attackedOps))], Skip: r.IntN(4), Times: 1 + r.IntN(3)}
		actions := []fault.Action{fault.CutBefore, fault.DropReply, fault.DropReply, fault.HoldRequest, fault.HoldReply, fault.DelayRequest, fault.DelayReply}
		switch rule.Op {
		case fault.Event:
			actions = []fault.Action{fault.CutBefore, fault.DelayReply, fault.HoldReply}
		case fault.Connect:
			actions = append(actions, fault.Garbage, fault.HalfAnswer)
			if a.brutal {
				actions = append(actions, fault.OtherSession)
			}
		}
		rule.Action = actions[r.IntN(len(actions))]
		if rule.Action == fault.DelayRequest || rule.Action == fault.DelayReply {
			rule.Delay = 1 + span
		}
		h := a.srv.Rules().Add(rule)
		await(span)
		h.Release()
	case k == 11:
		a.srv.Freeze()
		await(span)
		a.srv.Thaw()
	case k == 12:
		a.srv.Refuse()
		a.srv.Cut()
		await(span)
		a.srv.Accept()
	case k == 13:
		a.srv.Cut()
	case k == 14:
		fe.Freeze()
		await(span)
		fe.Thaw()
	case k == 15 && len(a.srv.Frontends()) > 1:
		fe.Isolate()
		await(span)
		if r.IntN(2) == 0 {
			fe.Cut()
		}
		fe.Heal()
	case k == 16 && len(a.srv.Frontends()) > 1:
		fe.LagBy(span / 4)
		await(span)
		fe.CatchUp()
	case k == 17:
		a.srv.Elect()
	case k == 18 && a.brutal:
		if sessions := a.srv.Sessions(); len(sessions) > 0 {
			_ = a.srv.Expire(sessions[r.IntN(len(sessions))].ID)
		}
	case k == 19:
		fe.Refuse()
		fe.Cut()
		await(span)
		fe.Accept()
	}
}

func (a *attack) run(seed uint64) {
	t := a.t
	r := rand.New(rand.NewPCG(seed, 1))
	a.brutal = r.IntN(4) == 0
	a.asks = r.IntN(2) == 0
	a.timeout = []time.Duration{4 * time.Second, 6 * time.Second, 10 * time.Second}[r.IntN(3)]
	frontends := []int{1, 1, 3}[r.IntN(3)]
	var err error
	a.srv, err = zkserver.Start(zkserver.WithFrontends(frontends), zkserver.WithReapInterval(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"/attack/a", "/attack/deep/b"}[:1+r.IntN(2)]
	policies := []retry.Policy{nil, retry.Never(), retry.Forever(100 * time.Millisecond), retry.Times(3, 20*time.Millisecond)}
	if os.Getenv("ATTACK_SLOW") != "" {
		policies = []retry.Policy{retry.Forever(30 * time.Second), retry.Exponential(2*time.Second, 5)}
	}
	var clients []*framework.Client
	var workers sync.WaitGroup
	for i := range 2 + r.IntN(4) {
		l := &line{srv: a.srv, conns: map[*lineConn]struct{}{}}
		a.lines = append(a.lines, l)
		opts := []framework.Option{framework.WithDialer(l.dial), framework.WithSessionTimeout(a.timeout)}
		if p := policies[r.IntN(len(policies))]; p != nil {
			opts = append(opts, framework.WithRetry(p))
		}
		c, err := framework.NewClient(a.srv.ConnectString(), opts...)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
		shared := lock.NewOwner(fmt.Sprint("shared ", i))
		for j := range 1 + r.IntN(4) {
			seed := r.Uint64()
			owned := r.IntN(2) == 0
			workers.Go(func() {
				r := rand.New(rand.NewPCG(seed, 2))
				var lopts []lock.Option
				if r.IntN(4) == 0 {
					lopts = append(lopts, lock.WithLossPolicy(lock.OnSuspend))
				}
				if r.IntN(4) == 0 {
					lopts = append(lopts, lock.WithQueuePosition(func(int) {}))
				}
				m, err := lock.NewMutex(c, paths[r.IntN(len(paths))], lopts...)
				if err != nil {
					panic(err)
				}
				if owned {
					a.work(r, m, shared, &shared, 5+r.IntN(20))
				} else {
					a.work(r, m, fmt.Sprint(i, "/", j), nil, 5+r.IntN(20))
				}
			})
		}
		if r.IntN(6) == 0 { // is closed in the middle
			after := time.Duration(r.Int64N(int64(30 * time.Second)))
			workers.Go(func() {
				await(after)
				_ = c.Close()
			})
		}
	}
	stop := make(chan struct{})
	var harms sync.WaitGroup
	for range 1 + r.IntN(3) {
		seed := r.Uint64()
		harms.Go(func() {
			r := rand.New(rand.NewPCG(seed, 3))
			for {
				select {
				case <-stop:
					return
				default:
				}
				a.harm(r)
				await(time.Duration(r.Int64N(int64(a.timeout))))
			}
		})
	}
	finished := make(chan struct{})
	go func() {
		workers.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-time.After(2 * time.Hour):
		stacks := make([]byte, 1<<20)
		t.Fatalf("the workers hang\n%s", stacks[:runtime.Stack(stacks, true)])
	}
	close(stop)
	harms.Wait()
	a.srv.Rules().Clear()
	a.srv.Thaw()
	a.srv.Accept()
	for _, fe := range a.srv.Frontends() {
		fe.Heal()
		fe.CatchUp()
	}
	await(3*a.timeout + 30*time.Second)
	for _, path := range paths {
		if left := znodesBelow(a.srv, path); len(left) > 0 {
			t.Errorf("left in the directory: %q", left)
		}
	}
	for i, c := range clients {
		if n := c.PendingDeletes(); n != 0 && c.State() != framework.Closed {
			t.Errorf("client %d (%v): %d deletions pending", i, c.State(), n)
		}
		if s := c.State(); s != framework.Connected && s != framework.Closed {
			t.Errorf("client %d: %v", i, s)
		}
	}
	for _, c := range clients {
		if c.State() == framework.Closed {
			continue
		}
		for _, path := range paths {
			m, _ := lock.NewMutex(c, path)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			l, err := m.Lock(ctx)
			if errors.Is(err, framework.ErrUnknownOutcome) && ctx.Err() == nil {
				l, err = m.Lock(ctx) // its connection was one that a late handshake had made void
			}
			cancel()
			if err != nil {
				t.Errorf("after it all, lock: %v", err)
				continue
			}
			if err := l.Release(context.Background()); err != nil {
				t.Errorf("after it all, release: %v", err)
			}
		}
	}
	for _, c := range clients {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	a.overlaps()
	if n := len(a.srv.Sessions()); n != 0 && !a.brutal {
		await(3 * a.timeout)
		if n := len(a.srv.Sessions()); n != 0 {
			t.Errorf("%d sessions after all were closed", n)
		}
	}
	if err := a.srv.Close(); err != nil {
		t.Error(err)
	}
}

// TestStressInVirtualTime has many contenders of few mutexes in a world where everything
// fails, and an oracle outside of it. ATTACK_SEED runs one seed, ATTACK_SEEDS as many;
// ATTACK_SLOW gives the clients policies with long pauses, ATTACK_CAUSES the contexts
// causes that look like answers.
func TestStressInVirtualTime(t *testing.T) {
	first, n := uint64(1), uint64(10)
	if s := os.Getenv("ATTACK_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
		n = 1
	}
	if s := os.Getenv("ATTACK_SEEDS"); s != "" {
		n, _ = strconv.ParseUint(s, 10, 64)
	}
	total := map[string]int{}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			a := &attack{fences: map[string]fenced{}, live: map[string][]*stake{}, counts: map[string]int{}}
			synctest.Test(t, func(t *testing.T) {
				a.t = t
				a.run(seed)
			})
			for k, v := range a.counts {
				total[k] += v
			}
		})
	}
	for k, v := range total {
		t.Logf("%6d %s", v, k)
	}
}
