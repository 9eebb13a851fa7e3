package execute_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/execute"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// schedulesVariable sets the number of schedules of TestStopBeforeSuccession.
const schedulesVariable = "DOCENT_EXEC_SCHEDULES"

// countOf returns the number in an environment variable, or the default.
func countOf(t *testing.T, variable string, count int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return count
	}
	return must.Get(strconv.Atoi(text))(t)
}

// A deafProgram ends by nothing but KILL, and that takes it some time.
type deafProgram struct {
	dies         time.Duration
	leader, gone chan struct{}

	mu              sync.Mutex
	warned, killed  time.Time
	ended, guardsBy time.Time
}

func newDeafProgram() *deafProgram {
	return &deafProgram{leader: make(chan struct{}), gone: make(chan struct{})}
}

func (g *deafProgram) Left() []string { return nil }

func (g *deafProgram) SignalAll(sig syscall.Signal) []string {
	g.Signal(sig)
	return nil
}

func (g *deafProgram) Signal(sig syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case sig == syscall.SIGTERM && g.warned.IsZero():
		g.warned = time.Now()
	case sig == syscall.SIGKILL && g.killed.IsZero():
		g.killed = time.Now()
		time.AfterFunc(g.dies, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.ended = time.Now()
			close(g.leader)
			close(g.gone)
		})
	}
}

func (g *deafProgram) Leader() <-chan struct{} { return g.leader }
func (g *deafProgram) Gone() <-chan struct{}   { return g.gone }

func (g *deafProgram) Guarded(kill time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.guardsBy = kill
}

// lateHolding is the mutant: a lease whose deadline looks later, so that TERM comes at the loss.
type lateHolding struct {
	*lock.Lease
	late time.Duration
}

func (h lateHolding) Deadline() time.Time { return h.Lease.Deadline().Add(h.late) }

// An observation is what became of one schedule.
type observation struct {
	warned, killed, ended time.Time
	guardsBy              time.Time
	deadline              time.Time // of the lease, when the group was killed
	granted               time.Time // to the successor
	verdict               execute.Verdict
	budget                execute.Budget
}

// fault returns what is wrong with the order of events.
func (o observation) fault() error {
	switch {
	case o.killed.IsZero() || !o.ended.Before(o.granted):
		return fmt.Errorf("the group ended %v after the successor's grant", o.ended.Sub(o.granted))
	case o.killed.After(o.deadline.Add(-o.budget.Reserve)):
		return fmt.Errorf("KILL %v before the lease deadline, want %v", o.deadline.Sub(o.killed), o.budget.Reserve)
	case o.granted.Before(o.deadline):
		return fmt.Errorf("the successor was granted %v before the deadline", o.deadline.Sub(o.granted))
	case o.killed.Sub(o.warned) < o.budget.Grace-o.budget.Timeout/64:
		return fmt.Errorf("KILL %v after the warning, want %v", o.killed.Sub(o.warned), o.budget.Grace)
	case o.verdict.Outcome != execute.OutcomeLost:
		return fmt.Errorf("verdict %+v", o.verdict)
	case o.guardsBy.After(o.deadline.Add(-o.budget.Reserve)):
		return fmt.Errorf("the guard kills %v too late", o.guardsBy.Sub(o.deadline.Add(-o.budget.Reserve)))
	}
	return nil
}

// A scene is a program that runs under a lock, and the holder's way to the server, which can be cut.
type scene struct {
	srv        *zkserver.Server
	route      *zkproxy.Proxy
	lease      *lock.Lease
	margin     time.Duration // of the lease
	group      *deafProgram
	supervisor execute.Supervisor
}

// newScene returns a scene with the session timeout, in a bubble.
func newScene(t *testing.T, timeout time.Duration) *scene {
	t.Helper()
	s := &scene{srv: zkserver.Run(t, append(zkenv.DrawVersion(t), zkserver.WithSessionTimeouts(time.Second, time.Minute))...), group: newDeafProgram()}
	s.route = zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) { return s.srv.Dial(ctx, "tcp", s.srv.Addr()) })
	holder := apptest.Client(t, s.srv.Addr(), framework.WithDialer(s.route.Dial), framework.WithSessionTimeout(timeout))
	s.lease = must.Get(newMutex(t, holder).Lock(lock.ContextWithOwner(t.Context(), lock.NewOwner(""))))(t)
	session := holder.Session()
	s.margin = session.Margin
	s.supervisor = execute.Supervisor{
		Holding: s.lease, Program: s.group, Budget: must.Get(execute.NewBudget(session.Timeout, session.Margin, -1))(t),
		Stop: syscall.SIGTERM, OnLost: syscall.SIGKILL, Leftovers: execute.WaitForLeftovers, Say: func(string, ...any) {},
	}
	must.OK(t, execute.AwaitAmple(t.Context(), s.lease, s.supervisor.Budget))
	return s
}

func (s *scene) cut() {
	s.route.Refuse()
	s.route.Cut()
}

// play plays the schedule of a seed: short outages, and one that lasts.
func play(t *testing.T, seed uint64, mutant bool) (o observation) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	between := func(a, b time.Duration) time.Duration { return a + time.Duration(random.Int64N(int64(b-a))) }
	timeout := between(4*time.Second, 40*time.Second)
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, timeout)
		next := apptest.Client(t, s.srv.Addr(), framework.WithDialer(s.srv.Dial))
		granted := make(chan time.Time, 1)
		go func() {
			if _, err := newMutex(t, next).Lock(t.Context()); err == nil {
				granted <- time.Now()
			}
		}()
		o.budget = s.supervisor.Budget
		s.group.dies = between(0, o.budget.Reserve)
		if mutant {
			s.supervisor.Holding, s.supervisor.OnLost = lateHolding{s.lease, o.budget.Grace + o.budget.Reserve}, syscall.SIGTERM
		}
		go func() {
			for range random.IntN(3) {
				<-time.After(between(0, timeout))
				s.cut()
				<-time.After(between(0, timeout/3))
				s.route.Heal()
			}
			<-time.After(between(0, timeout))
			s.cut()
		}()
		o.verdict = s.supervisor.Run()
		o.deadline = s.lease.Deadline()
		o.granted = <-granted
		o.warned, o.killed, o.ended, o.guardsBy = s.group.warned, s.group.killed, s.group.ended, s.group.guardsBy
		<-time.After(10 * timeout) // the schedule ends, too
	})
	return o
}

func newMutex(t *testing.T, c *framework.Client) *lock.Mutex {
	t.Helper()
	return must.Get(lock.NewMutex(c, "/locks/succession"))(t)
}

// No process of the group runs when another client is granted the lock, whatever the outages.
func TestStopBeforeSuccession(t *testing.T) {
	t.Parallel()
	first := rand.Uint64()
	for i := range countOf(t, schedulesVariable, 200) {
		seed := first + uint64(i)
		if err := play(t, seed, false).fault(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// The order of consul's lock, which sends TERM at the loss, overlaps with the successor: so the test
// above can fail.
func TestStopBeforeSuccession_fails_with_TERM_at_the_loss(t *testing.T) {
	t.Parallel()
	overlaps := 0
	const schedules = 30
	for seed := range uint64(schedules) {
		o := play(t, seed, true)
		if o.fault() == nil {
			t.Errorf("seed %d: no fault", seed)
		}
		if !o.ended.Before(o.granted) {
			overlaps++
		}
	}
	// The mutant's KILL comes the grace after the deadline. The successor's grant comes the margin
	// after it, or later, because the server counts from the last ping.
	if overlaps < schedules/4 {
		t.Errorf("%d of %d schedules overlap, want at least a quarter", overlaps, schedules)
	}
}

// After the warning the group ends, although the connection returns and the deadline moves on.
func TestOutage_that_ends_after_the_warning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 20 * time.Second
		s := newScene(t, timeout)
		signals := make(chan os.Signal, 1)
		s.supervisor.Signals = signals
		var verdict execute.Verdict
		var running sync.WaitGroup
		running.Go(func() { verdict = s.supervisor.Run() })
		s.cut()
		warned := func() time.Time {
			s.group.mu.Lock()
			defer s.group.mu.Unlock()
			return s.group.warned
		}
		for warned().IsZero() {
			<-time.After(10 * time.Millisecond)
		}
		s.route.Heal()
		select {
		case <-s.group.gone:
		case <-time.After(timeout):
			signals <- syscall.SIGKILL
		}
		running.Wait()
		if took := s.group.killed.Sub(s.group.warned); took > s.supervisor.Budget.Grace || verdict.Outcome != execute.OutcomeLost || s.lease.Err() != nil {
			t.Errorf("KILL %v after the warning, %+v, lease %v", took, verdict, s.lease.Err())
		}
	})
}

// An outage that the contract rides out disturbs the group in no way.
func TestOutage_that_is_ridden_out(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			timeout := 4*time.Second + time.Duration(random.Int64N(int64(36*time.Second)))
			s := newScene(t, timeout)
			signals := make(chan os.Signal, 1)
			s.supervisor.Signals = signals
			var verdict execute.Verdict
			var running sync.WaitGroup
			running.Go(func() { verdict = s.supervisor.Run() })
			<-time.After(time.Duration(random.Int64N(int64(timeout))))
			s.cut()
			// The client needs a moment to connect again, and for the first proof.
			b := s.supervisor.Budget
			<-time.After((execute.Remains(timeout, s.margin) - b.Grace - b.Reserve) * 2 / 3)
			s.route.Heal()
			<-time.After(3 * timeout)
			if !s.group.warned.IsZero() || s.lease.Err() != nil {
				t.Errorf("seed %d: warned at %v, lease %v", seed, s.group.warned, s.lease.Err())
			}
			signals <- syscall.SIGKILL
			running.Wait()
			if verdict.Outcome != execute.OutcomeDone {
				t.Errorf("seed %d: %+v", seed, verdict)
			}
		})
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		timeout, margin, grace time.Duration
		wantGrace, wantReserve time.Duration
		fault                  string
	}{
		{30 * time.Second, 2 * time.Second, -1, 5 * time.Second, 500 * time.Millisecond, ""},
		{30 * time.Second, 2 * time.Second, 0, 0, 500 * time.Millisecond, ""},
		{30 * time.Second, 2 * time.Second, 9750 * time.Millisecond, 9750 * time.Millisecond, 500 * time.Millisecond, ""},
		{30 * time.Second, 2 * time.Second, 10 * time.Second, 0, 0, "--grace 10s: must be at most 9.75s, because the servers granted a session timeout of 30s"},
		{8 * time.Second, 2 * time.Second, -1, time.Second, 250 * time.Millisecond, ""},
	} {
		b, err := execute.NewBudget(c.timeout, c.margin, c.grace)
		if c.fault != "" {
			if err == nil || err.Error() != c.fault {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || b.Grace != c.wantGrace || b.Reserve != c.wantReserve {
			t.Errorf("%+v: %+v, %v", c, b, err)
		}
	}
}

// The help and the page say how long an outage a client of the default settings rides out.
func TestPages_say_what_the_contract_rides_out(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
		s := apptest.Client(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(30*time.Second)).Session()
		budget := must.Get(execute.NewBudget(s.Timeout, s.Margin, -1))(t)
		now := time.Now()
		ride := budget.Warning(now.Add(execute.Remains(s.Timeout, s.Margin))).Sub(now)
		page := must.Get(os.ReadFile("../../../../docs/command.md"))(t)
		var help bytes.Buffer
		app := &cli.App{Out: &help, Err: &help}
		app.Main(t.Context(), []string{"help", "loss"})
		for name, text := range map[string]string{"page": string(page), "help": help.String()} {
			if want := fmt.Sprintf("%g s of a session timeout of 30 s", ride.Seconds()); !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
				t.Errorf("the %s does not say %q", name, want)
			}
		}
	})
}
