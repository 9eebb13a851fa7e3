package framework_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestAnyLink draws links, loads and faults, and looks at what holds on each of them:
//
//   - no call fails, no connection breaks and no lease is lost that the link would have carried;
//   - the link carries at least four fifths of what it can;
//   - a server has to keep little for the client;
//   - Close ends the session within a second, if there is a healthy server.
//
// DOCENT_LINKS says how many to draw by new seeds, and DOCENT_LINK draws one again by its seed.
func TestAnyLink(t *testing.T) {
	if one := os.Getenv("DOCENT_LINK"); one != "" {
		seed := must.Get(strconv.ParseUint(one, 10, 64))(t)
		synctest.Test(t, drawWorld(seed).run)
		return
	}
	seeds := make([]uint64, 30)
	for i := range seeds {
		seeds[i] = uint64(i)
	}
	seeds = append(seeds,
		865037483,           // the first reply is half as long as most
		21680755, 396894841, // writes wait for as long as their callers do
		547341054, // large writes leave for a frozen server
		8515489,   // Close cuts the calls that the link was used for
		343838307, // the link carries two thirds of the calls of several requests
	)
	if s := os.Getenv("DOCENT_LINKS"); s != "" {
		seeds = make([]uint64, must.Get(strconv.Atoi(s))(t))
		for i := range seeds {
			seeds[i] = rand.Uint64N(1e9)
		}
	}
	for _, seed := range seeds {
		w := drawWorld(seed)
		t.Run(strconv.FormatUint(w.seed, 10), func(t *testing.T) { synctest.Test(t, w.run) })
	}
}

// A linkWorld is a client on a link, and what it does.
type linkWorld struct {
	seed     uint64
	timeout  time.Duration // of the session
	up, down int           // see link, as the next two
	buffer   int
	trip     time.Duration
	hold     bool
	sizes    []int // of the znodes' data
	mix      []string
	callers  int
	calls    int
	patience time.Duration // of a call; 0 is without end
	freeze   bool          // its server, of three, for two session timeouts
	cutShort bool          // Close comes before the load has ended
}

// drawWorld draws a world by the seed.
func drawWorld(seed uint64) *linkWorld {
	r := rand.New(rand.NewPCG(seed, 40))
	w := &linkWorld{
		seed:     seed,
		timeout:  []time.Duration{6 * time.Second, 10 * time.Second, 30 * time.Second}[r.IntN(3)],
		up:       drawRate(r),
		down:     drawRate(r),
		buffer:   []int{0, 0, 64 << 10, 256 << 10}[r.IntN(4)],
		trip:     []time.Duration{0, 0, time.Millisecond, 10 * time.Millisecond}[r.IntN(4)],
		hold:     r.IntN(3) > 0,
		mix:      [][]string{{"read"}, {"each"}, {"write"}, {"multi"}, {"watch", "write"}, {"read", "each", "write", "multi", "watch", "exists"}}[r.IntN(6)],
		callers:  []int{1, 4, 30, 300}[r.IntN(4)],
		freeze:   r.IntN(5) == 0,
		cutShort: r.IntN(4) == 0,
	}
	largest := []int{0, 1 << 10, 64 << 10, 1000 << 10}[r.IntN(4)]
	for range 1 + r.IntN(100) {
		size := largest
		if r.IntN(2) == 0 {
			size = r.IntN(largest + 1)
		}
		w.sizes = append(w.sizes, size)
	}
	const mostCalls, mostBytes = 3000, 24 * mega
	w.calls = mostCalls
	up, down := w.average()
	slowest := max(seconds(up, w.up), seconds(down, w.down), 1e-9)
	w.calls = max(4, int(min(mostCalls, mostBytes/(up+down), 4*w.timeout.Seconds()/slowest)))
	w.callers = min(w.callers, w.calls)
	if r.IntN(3) == 0 && w.callers > 4 {
		w.patience = time.Duration((8 + 8*r.Float64()) * float64(w.longest()+100*time.Millisecond))
		w.calls = min(mostCalls, 4*w.calls) // of which the link carries some
	}
	return w
}

// drawRate returns from 100 kB to 100 MB a second, or 0.
func drawRate(r *rand.Rand) int {
	if r.IntN(5) == 0 {
		return 0
	}
	return int(100 * kilo * math.Pow(1000, r.Float64()))
}

// seconds returns how long the bytes take.
func seconds(bytes float64, rate int) float64 {
	if rate == 0 {
		return 0
	}
	return bytes / float64(rate)
}

const together = 16 // znodes of a call that reads or writes several

// cost returns the bytes of a call, to the server and from it, if the znodes have n bytes together.
func cost(call string, n int) (up, down float64) {
	const head, stat = 40, 90
	switch call {
	case "read", "watch": // several watches of one znode may share a read
		return head, float64(n + stat)
	case "each":
		return together * head, float64(n + together*stat)
	case "write":
		return float64(n + head), stat
	case "multi":
		return float64(n + together*head), together * stat
	}
	return head, stat
}

// average returns the bytes of a call on average.
func (w *linkWorld) average() (up, down float64) {
	sum := 0
	for _, size := range w.sizes {
		sum += size
	}
	for _, call := range w.mix {
		n := sum / len(w.sizes)
		if call == "each" || call == "multi" {
			n *= together
		}
		u, d := cost(call, min(n, w.mostOf(call)))
		up, down = up+u/float64(len(w.mix)), down+d/float64(len(w.mix))
	}
	return up, down
}

// mostOf returns how many bytes of data a call may have.
func (w *linkWorld) mostOf(call string) int {
	if call == "multi" {
		return 900 << 10
	}
	return math.MaxInt
}

// longest returns how long the largest request or reply of one znode, or of one transaction, takes.
func (w *linkWorld) longest() time.Duration {
	var up, down float64
	for _, call := range w.mix {
		n := slices.Max(w.sizes)
		if call == "multi" {
			n = min(n*together, w.mostOf(call))
		}
		if call == "each" { // at most as much is asked for at once
			n = min(n*together, n+1<<20)
		}
		u, d := cost(call, n)
		up, down = max(up, u), max(down, d)
	}
	slow := max(seconds(up+float64(w.buffer), w.up), seconds(down, w.down))
	return time.Duration(slow*float64(time.Second)) + 4*w.trip
}

// carries reports whether a heartbeat that has to wait for one large frame is in time.
func (w *linkWorld) carries() bool { return w.longest() <= w.timeout/4 }

func (w *linkWorld) String() string {
	return fmt.Sprintf("T %v, up %d, down %d, buffer %d, trip %v, hold %t, %d znodes up to %d, %v, %d callers, %d calls, patience %v, freeze %t, cut short %t; a large frame takes %v",
		w.timeout, w.up, w.down, w.buffer, w.trip, w.hold, len(w.sizes), slices.Max(w.sizes), w.mix, w.callers, w.calls, w.patience, w.freeze, w.cutShort, w.longest())
}

// A worldRun is a world under way.
type worldRun struct {
	*linkWorld
	client *framework.Client
	paths  []string

	mu       sync.Mutex
	left     int     // calls
	sent     float64 // bytes of the calls that succeeded
	received float64
	cut      float64 // seconds that the link has spent at most on calls that Close ended
	faults   map[string]int
	closing  bool
}

func (w *linkWorld) run(t *testing.T) {
	srv := zkserver.Run(t, append(zkenv.DrawVersion(t), zkserver.WithFrontends(3), zkserver.WithSessionTimeouts(time.Second, time.Minute))...)
	l := &link{up: w.up, down: w.down, buffer: w.buffer, trip: w.trip}
	run := &worldRun{linkWorld: w, left: w.calls, faults: make(map[string]int)}
	other := virtual(t, srv)
	mustCreate(t, other, "/d", "")
	for i, size := range w.sizes {
		run.paths = append(run.paths, mustCreate(t, other, fmt.Sprintf("/d/%d", i), string(make([]byte, size))))
	}
	must.OK(t, other.Close())
	var states trail
	run.client = connect(t, strings.Join([]string{srv.Frontend(0).Addr(), srv.Frontend(1).Addr(), srv.Frontend(2).Addr()}, ","),
		framework.WithSessionTimeout(w.timeout), framework.WithStateListener(states.add), l.over(t, srv))
	var h *framework.SessionHold
	if w.hold {
		h = mustHold(t, run.client)
	}
	start := time.Now()
	loaded := run.load(t)
	run.harm(t, srv, l, loaded)
	took := time.Since(start)
	if h != nil && w.carries() {
		wantErr(t, "the lease", h.Err(), nil)
	}
	if w.carries() && !w.freeze {
		wantList(t, "states", states.states(), []framework.State{connecting, connected})
	}
	run.close(t)
	for _, left := range srv.Sessions() { // one that had no reply yet to its first handshake is not the client's
		if slices.ContainsFunc(states.list(), func(c framework.StateChange) bool { return c.Session == left.ID }) {
			t.Errorf("session %#x is left after Close", left.ID)
		}
	}
	<-loaded
	run.judge(t, l, took)
	if t.Failed() {
		t.Logf("seed %d: %v\nafter %v: %v; states %v; the server kept %d bytes", w.seed, w, took, run.faults, states.states(), l.kept())
	}
}

// harm freezes the server that is in use, if it is to be, and returns when the load has ended or is to be cut
// short.
func (run *worldRun) harm(t *testing.T, srv *zkserver.Server, l *link, loaded <-chan struct{}) {
	t.Helper()
	short := make(<-chan time.Time)
	if run.cutShort {
		short = time.After(run.timeout)
	}
	if run.freeze {
		sleep(run.timeout / 3)
		for i := range 3 {
			if f := srv.Frontend(i); f.Addr() == l.server() {
				f.Freeze()
				time.AfterFunc(2*run.timeout, f.Thaw)
			}
		}
		sleep(run.timeout)
	}
	select {
	case <-loaded:
	case <-short:
	case <-time.After(time.Hour):
		t.Fatalf("the load has not ended in an hour: %v", run.linkWorld)
	}
}

// load makes the calls. The channel is closed when all have returned.
func (run *worldRun) load(t *testing.T) <-chan struct{} {
	t.Helper()
	var wg sync.WaitGroup
	for i := range run.callers {
		r := rand.New(rand.NewPCG(run.seed, uint64(i)))
		wg.Go(func() {
			for run.next() {
				run.one(t.Context(), r)
			}
		})
	}
	loaded := make(chan struct{})
	go func() {
		wg.Wait()
		close(loaded)
	}()
	return loaded
}

// next reports whether there is another call to make.
func (run *worldRun) next() bool {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.left--
	return run.left >= 0 && !run.closing
}

// one makes a call, and records what came of it.
func (run *worldRun) one(ctx context.Context, r *rand.Rand) {
	if run.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, run.patience)
		defer cancel()
	}
	call := run.mix[r.IntN(len(run.mix))]
	n, err := run.call(ctx, call, r)
	up, down := cost(call, n)
	run.mu.Lock()
	defer run.mu.Unlock()
	switch {
	case err == nil:
		run.sent, run.received = run.sent+up, run.received+down
	case run.patience > 0 && errors.Is(err, context.DeadlineExceeded):
	case run.closing:
		run.cut += seconds(up, run.up) + seconds(down, run.down)
	default:
		run.faults[fmt.Sprintf("%s: %.120v", call, err)]++
	}
}

// call makes a call, and returns how many bytes of data it carried.
func (run *worldRun) call(ctx context.Context, call string, r *rand.Rand) (n int, err error) {
	i := r.IntN(len(run.paths))
	path, size, c := run.paths[i], run.sizes[i], run.client
	switch call {
	case "read":
		return size, last(c.Get(ctx, path))
	case "write":
		return size, last(c.Set(ctx, path, make([]byte, size), framework.AnyVersion))
	case "exists":
		return 0, last(c.Exists(ctx, path))
	case "watch":
		watch, err := c.Watch(ctx, path, framework.WatchData)
		if err == nil {
			watch.Close()
		}
		return size, err
	}
	var paths []string
	var ops []framework.TxnOp
	for range together {
		i := r.IntN(len(run.paths))
		if n += run.sizes[i]; n > run.mostOf(call) {
			n -= run.sizes[i]
			break
		}
		paths = append(paths, run.paths[i])
		ops = append(ops, framework.OpSet(run.paths[i], make([]byte, run.sizes[i]), framework.AnyVersion))
	}
	if call == "each" {
		_, errs := c.GetEach(ctx, paths...)
		return n, errors.Join(errs...)
	}
	if len(ops) == 0 {
		return 0, nil
	}
	return n, last(c.Txn(ctx, ops...))
}

// close closes the client, and looks at when and how that ends.
func (run *worldRun) close(t *testing.T) {
	t.Helper()
	run.mu.Lock()
	run.closing = true
	run.mu.Unlock()
	start := time.Now()
	check(t, run.client.Close())
	wantWithin(t, start, time.Second)
}

// judge looks at what the calls came to in that time.
func (run *worldRun) judge(t *testing.T, l *link, took time.Duration) {
	t.Helper()
	const kept = 5 << 20
	if largest := slices.Max(run.sizes); l.kept() > kept+largest {
		t.Errorf("the server had to keep %d bytes, want at most %d", l.kept(), kept+largest)
	}
	if !run.carries() || run.freeze {
		return
	}
	if len(run.faults) > 0 {
		t.Errorf("calls failed: %v", run.faults)
	}
	run.judgeGoodput(t, took)
}

// judgeGoodput compares what was carried with what the link can carry, if nothing else bounds the calls: their
// number, round trips, or contexts that end.
func (run *worldRun) judgeGoodput(t *testing.T, took time.Duration) {
	t.Helper()
	up, down := seconds(run.sent, run.up), seconds(run.received, run.down)
	best := max(up, down)
	if len(run.mix) > 1 || run.callers < 30 {
		best = up + down // requests and replies need not overlap
	}
	best += float64(run.calls) / float64(run.callers) * 2 * run.trip.Seconds() // callers wait for their replies
	const roundTripBytes = 64 << 10                                            // what is in flight on a link that is full
	busy := run.callers >= 4 && float64(max(run.up, run.down))*2*run.trip.Seconds() < roundTripBytes
	slack := time.Second + 2*run.longest() + run.patience
	if busy && took.Seconds()*0.8 > best+run.cut+slack.Seconds() {
		t.Errorf("the link was in use for %.3f s of %v", best, took)
	}
}
