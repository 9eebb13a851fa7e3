package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/history"
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
	records := make(chan history.Record, 1<<16)
	var successions sync.WaitGroup
	defer successions.Wait()
	for phase := range killPhases {
		master := masterOf(t, e)
		r := &lossRound{observer: e.Servers[votes], next: next, records: records, name: fmt.Sprintf("phase-%d", phase)}
		r.begin(t, perPhase, opts)
		r.hold(t, time.Duration(phase)*slowTick/killPhases)
		r.kill(t, master)
		successions.Go(func() { r.succeed(t) })
		restart(t, master, r.observer)
	}
	successions.Wait()
	var all []history.Record
	for len(records) > 0 {
		all = append(all, <-records)
	}
	report := must.Get(history.Assemble(all))(t).LossReport()
	for _, f := range report.Faults {
		t.Error(f)
	}
	if want := killPhases * perPhase; len(report.Gaps) != want {
		t.Fatalf("%d leases were lost and their locks granted to others, want %d", len(report.Gaps), want)
	}
	var gaps []time.Duration
	for _, g := range report.Gaps {
		gaps = append(gaps, g.Length())
	}
	t.Logf("%d leases, %d phases: least gaps between loss and next grant %v, median %v", len(gaps), killPhases,
		gaps[:min(5, len(gaps))], gaps[len(gaps)/2])
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
	records  chan history.Record
	killed   atomic.Bool // from here on the holders connect to no server
	holders  []*framework.Client
	leases   []*history.Hold
}

// lock has a client lock, and records its lease.
func (r *lossRound) lock(t *testing.T, c *framework.Client, owner string, i int) (*history.Hold, error) {
	t.Helper()
	path := fmt.Sprintf("/observers/%s/%d", r.name, i)
	m := must.Get(lock.NewMutex(c, path))(t)
	ctx, cancel := context.WithTimeout(t.Context(), observersLimit)
	defer cancel()
	recorder := history.NewRecorder(path+" "+owner, history.Monotonic, func(record history.Record) { r.records <- record })
	e := history.Entry{Model: history.Mutex(), Group: path, Owner: owner, Session: func() int64 { return c.Session().ID }}
	return recorder.Lock(ctx, e, func(ctx context.Context) (history.Lease, error) { return m.Lock(ctx) })
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
		t.Cleanup(func() { _ = c.Close() }) // succeed has closed it if the test passes
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
		r.leases = append(r.leases, must.Get(r.lock(t, c, "holder", i))(t))
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
	for i, l := range r.leases {
		if err := l.Check(); err != nil {
			t.Errorf("%s: lease %d was lost before the kill: %v", r.name, i, err)
		}
	}
}

// succeed has the next client lock what each holder has, and closes the holders when they have lost theirs.
func (r *lossRound) succeed(t *testing.T) {
	var all sync.WaitGroup
	for i, lost := range r.leases {
		all.Go(func() {
			h, err := r.lock(t, r.next, "next", i)
			if err != nil {
				t.Errorf("%s: %v", r.name, err)
				return
			}
			release(h)
			for lost.Check() == nil { // it ends at its deadline, whatever happens
				pause(t.Context(), pollEvery)
			}
			_ = r.holders[i].Close() // its session is over
		})
	}
	all.Wait()
}
