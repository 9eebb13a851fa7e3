package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

const (
	// leasesVariable is how many leases are lost in all: without it there is no run.
	leasesVariable = "OBSERVER_LEASES"
	// marginVariable is another lease margin than the default.
	marginVariable = "OBSERVER_MARGIN"

	killPhases     = 20              // the moments within a tick at which servers are killed
	slowTick       = 3 * time.Second // longer than a default server's
	slowSession    = 30 * time.Second
	slowBeat       = slowSession / 4 // between two heartbeats of a holder
	beatsSpread    = slowTick / 4    // from the first holder's heartbeat to the last one's
	observersLimit = 2 * time.Minute // bounds the restart of two servers, and a succession
)

// TestLossBeforeSuccessionBehindAnObserverMaster kills an observer and its master at once, so the leader
// may not have the last tick's contacts of the clients there. Each phase of a tick has its turn. The
// holders' heartbeats are just before the kill: that is when a proven contact is as recent as it gets, and
// a report of it may be lost. The waiters are at the leader.
func TestLossBeforeSuccessionBehindAnObserverMaster(t *testing.T) {
	perPhase, opts := observerRun(t)
	e := zktest.RunEnsemble(t, votes, zktest.WithTickTime(slowTick), zktest.WithLogLevel("ERROR"),
		zktest.WithObservers(1), zktest.WithNamespaces(), zktest.WithObserverMasters())
	leader := must.Get(e.Leader(t.Context()))(t)
	next := must.Get(framework.NewClient(leader.Addr()))(t)
	t.Cleanup(func() { must.OK(t, next.Close()) })
	var gaps gapList
	var successions sync.WaitGroup
	defer successions.Wait()
	for phase := range killPhases {
		master := masterOf(t, e)
		r := &lossRound{observer: e.Servers[votes], next: next, gaps: &gaps, name: fmt.Sprintf("phase %d", phase)}
		r.begin(t, perPhase, opts)
		r.hold(t, time.Duration(phase)*slowTick/killPhases)
		r.kill(t, master)
		successions.Go(func() { r.judge(t) })
		restart(t, master, r.observer)
	}
	successions.Wait()
	slices.Sort(gaps.all)
	if want := killPhases * perPhase; len(gaps.all) != want {
		t.Fatalf("%d leases were lost and their locks granted to others, want %d", len(gaps.all), want)
	}
	t.Logf("%d leases, %d phases: least gaps between loss and next grant %v, median %v", len(gaps.all), killPhases,
		gaps.all[:min(5, len(gaps.all))], gaps.all[len(gaps.all)/2])
}

// observerRun returns how many leases each phase has, and the options of their clients, or skips the test.
func observerRun(t *testing.T) (perPhase int, opts []framework.Option) {
	t.Helper()
	text := os.Getenv(leasesVariable)
	if text == "" {
		t.Skipf("SKIPPED, NOT TESTED: %s is not set; 300 leases take ten minutes", leasesVariable)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < killPhases || n%killPhases != 0 {
		t.Fatalf("%s=%q: must be a multiple of %d", leasesVariable, text, killPhases)
	}
	opts = append(opts, framework.WithSessionTimeout(slowSession))
	if text := os.Getenv(marginVariable); text != "" {
		opts = append(opts, framework.WithLeaseMargin(must.Get(time.ParseDuration(text))(t)))
	}
	return n / killPhases, opts
}

// masterOf returns the follower that the observer learns from, once the ensemble is whole.
func masterOf(t *testing.T, e *zktest.Ensemble) (master *zktest.Server) {
	t.Helper()
	zktest.Eventually(t, observersLimit, "an observer's master", func() bool {
		followers, err := e.Followers(t.Context())
		if err != nil || len(followers) != votes-1 {
			return false
		}
		for _, s := range followers {
			if hasObserver(t.Context(), s) {
				master = s
			}
		}
		return master != nil
	})
	return master
}

// restart starts servers again, all at once.
func restart(t *testing.T, servers ...*zktest.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), observersLimit)
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, len(servers))
	for i, s := range servers {
		all.Go(func() { errs[i] = s.Restart(ctx) })
	}
	all.Wait()
	must.OK(t, errors.Join(errs...))
}

// A lossRound is one kill, and the leases that are lost by it.
type lossRound struct {
	name     string
	observer *zktest.Server
	next     *framework.Client // waits for each lock
	gaps     *gapList
	killed   atomic.Bool // from here on the holders connect to no server
	killedAt time.Time
	holders  []*framework.Client
	leases   []*lease.Lease
}

// A gapList is written by several rounds.
type gapList struct {
	mu  sync.Mutex
	all []time.Duration
}

func (r *lossRound) path(i int) string {
	return fmt.Sprintf("/observers/%s/%d", strings.ReplaceAll(r.name, " ", ""), i)
}

// begin connects the holders to the observer.
func (r *lossRound) begin(t *testing.T, n int, opts []framework.Option) {
	t.Helper()
	var plain net.Dialer
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if r.killed.Load() {
			return nil, errors.New("the holder is cut off")
		}
		return plain.DialContext(ctx, network, addr)
	}
	for range n {
		c := must.Get(framework.NewClient(r.observer.Addr(), append(slices.Clone(opts), framework.WithDialer(dial))...))(t)
		t.Cleanup(func() { _ = c.Close() }) // judge has closed it if the test passes
		r.holders = append(r.holders, c)
	}
	for _, c := range r.holders {
		must.OK(t, c.AwaitConnected(t.Context()))
	}
}

// hold has the holders lock one after the other from the given phase of a tick on, and returns when the
// last one's heartbeat has just been sent.
func (r *lossRound) hold(t *testing.T, phase time.Duration) {
	t.Helper()
	begin := time.Now().Truncate(slowTick).Add(slowTick + phase)
	for i, c := range r.holders {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * beatsSpread / time.Duration(len(r.holders)))))
		m := must.Get(lock.NewMutex(c, r.path(i)))(t)
		r.leases = append(r.leases, must.Get(m.Lock(t.Context()))(t))
	}
	time.Sleep(time.Until(begin.Add(beatsSpread + slowBeat)))
}

// kill kills the observer and its master.
func (r *lossRound) kill(t *testing.T, master *zktest.Server) {
	t.Helper()
	r.killed.Store(true)
	var both sync.WaitGroup
	for _, s := range []*zktest.Server{r.observer, master} {
		both.Go(func() {
			if err := s.Kill(); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	r.killedAt = time.Now()
	for i, l := range r.leases {
		if err := l.Err(); err != nil {
			t.Errorf("%s: lease %d was lost before the kill: %v", r.name, i, err)
		}
	}
}

// judge compares each loss with the next grant, and closes the holders.
func (r *lossRound) judge(t *testing.T) {
	var all sync.WaitGroup
	gaps := make([]time.Duration, len(r.leases))
	lost := make([]time.Time, len(r.leases))
	for i, l := range r.leases {
		all.Go(func() {
			<-l.Lost() // at its deadline, whatever happens
			lost[i] = time.Now()
			_ = r.holders[i].Close() // its session is over
		})
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), observersLimit)
			defer cancel()
			granted, err := r.succeed(ctx, i)
			if err != nil {
				t.Errorf("%s: %v", r.name, err)
			}
			gaps[i] = granted.Sub(r.killedAt)
		})
	}
	all.Wait()
	var pairs strings.Builder
	for i, granted := range gaps {
		after := lost[i].Sub(r.killedAt)
		fmt.Fprintf(&pairs, " %.2f-%.2f", after.Seconds(), granted.Seconds())
		if gaps[i] -= after; gaps[i] <= 0 {
			t.Errorf("%s: lease %d was lost %v after the kill, %v after the next grant", r.name, i, after, -gaps[i])
		}
	}
	r.gaps.mu.Lock()
	r.gaps.all = append(r.gaps.all, gaps...)
	r.gaps.mu.Unlock()
	t.Logf("%s: least gap %v, losses and next grants, in seconds after the kill:%s", r.name, slices.Min(gaps), &pairs)
}

// succeed waits for a lock and returns when it was granted.
func (r *lossRound) succeed(ctx context.Context, i int) (time.Time, error) {
	m, err := lock.NewMutex(r.next, r.path(i))
	if err != nil {
		return time.Time{}, err
	}
	l, err := m.Lock(ctx)
	granted := time.Now()
	if err != nil {
		return granted, err
	}
	return granted, l.Release(ctx)
}
