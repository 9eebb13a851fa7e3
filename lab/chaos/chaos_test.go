package chaos_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/history"
)

const (
	// secondsVariable is how long faults are done: without it there is no run.
	secondsVariable = "CHAOS_SECONDS"
	// seedVariable repeats the schedule of a run, though not its outcome: the
	// machine has a say in that.
	seedVariable = "CHAOS_SEED"

	// leastRun is the shortest run that can be expected to have something of everything.
	leastRun = 30 * time.Second
	// faultEvery is the least rate of faults that is enough.
	faultEvery = 3 * time.Second
	// startLimit bounds the time until every kind of lock was granted first.
	startLimit = time.Minute
	// printed is how many violations are shown; there are few different ones.
	printed = 50
	// lateAttempts is how many holders are stopped at the start, and reportLimit bounds the wait for
	// the refusal of one's write.
	lateAttempts = 4
	reportLimit  = 2 * longestSession
	// overtime bounds what a run may take in addition.
	overtime = time.Minute
	// checkLimit bounds porcupine's work on one group, which takes milliseconds.
	checkLimit = time.Minute
)

// resultDir is where the records of a run go, and the pictures of what has failed.
var resultDir = filepath.Join("..", "..", ".cache", "chaos")

// TestChaos has workers contend on an ensemble with faults, and checks what they did.
func TestChaos(t *testing.T) {
	length, seed := parameters(t)
	fmt.Printf("chaos: %v of faults, CHAOS_SEED=%d\n", length, seed)
	r := newRun(t, seed)
	r.seeLateWrites(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var schedules sync.WaitGroup
	schedules.Go(func() { r.play(ctx, 1, 1, time.Second, 5*time.Second, []int{0, 1}, r.serverFaults()) })
	schedules.Go(func() {
		r.play(ctx, 2, workersFaults, 100*time.Millisecond, 700*time.Millisecond, nil, r.workerFaults())
	})
	schedules.Go(func() { r.play(ctx, 3, 1, 100*time.Millisecond, 700*time.Millisecond, nil, r.connectionFaults()) })
	length = r.last(ctx, t, length)
	cancel()
	schedules.Wait()
	r.finish()

	vacuous(t, r.judge(t, length).vacuity())
	r.saveRecords(t)
}

// seeLateWrites stops holders before the servers have faults, until late writes of both kinds were
// refused. Under the servers' faults that is left to chance: in an outage no client becomes a holder, and
// no session ends.
func (r *run) seeLateWrites(t *testing.T) {
	t.Helper()
	stops := r.workerFaults()[:1]
	d := dice{rand.New(rand.NewPCG(r.seed, 4))}
	for range lateAttempts {
		r.do(t.Context(), stops[0], d)
		if await(t.Context(), reportLimit, func() bool {
			byFence, byGuard := r.measure(t, 0).late()
			return byFence > 0 && byGuard > 0
		}) {
			return
		}
	}
}

// last returns when the run has lasted long enough, and how long that was. On a machine
// that is very busy a run may not have had a bit of everything by then: it goes on for
// a minute more at the most.
func (r *run) last(ctx context.Context, t *testing.T, length time.Duration) time.Duration {
	t.Helper()
	start := time.Now()
	pause(ctx, length)
	missing := r.measure(t, length).vacuity()
	for until := time.Now().Add(overtime); len(missing) > 0 && time.Now().Before(until); {
		fmt.Printf("chaos: goes on after %v: %q\n", time.Since(start).Round(time.Second), missing)
		pause(ctx, 5*time.Second)
		missing = r.measure(t, time.Since(start)).vacuity()
	}
	return time.Since(start).Round(time.Second)
}

// vacuous reports what the run should have had, and did not.
func vacuous(t *testing.T, missing []string) {
	t.Helper()
	for _, what := range missing {
		t.Error("vacuous: " + what)
	}
}

// parameters returns the length of the run and its seed, or skips the test.
func parameters(t *testing.T) (length time.Duration, seed uint64) {
	t.Helper()
	text := os.Getenv(secondsVariable)
	if text == "" {
		t.Skipf("%s is not set: make chaos does this", secondsVariable)
	}
	if !history.Shared {
		t.Skip("this system has no clock that all processes share")
	}
	seconds, err := strconv.Atoi(text)
	length = time.Duration(seconds) * time.Second
	if err != nil || length < leastRun {
		t.Fatalf("%s=%q: must be a number of at least %v", secondsVariable, text, leastRun.Seconds())
	}
	seed = rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	return length, seed
}

// saveRecords keeps everything that is known of the run.
func (r *run) saveRecords(t *testing.T) {
	t.Helper()
	records := r.board.all()
	add := func(record history.Record) { records = append(records, record) }
	for _, v := range r.revokes {
		add(history.Record{Kind: "revoked", Client: v.client, Session: v.session, Call: v.at})
	}
	for _, s := range r.stops {
		add(history.Record{Kind: "stopped", Client: s.client, Call: s.from, Return: s.to})
	}
	for _, f := range r.faults {
		add(history.Record{Kind: "fault", Client: f.whom, Call: f.from, Return: f.to, Note: f.name})
	}
	must.OK(t, os.MkdirAll(resultDir, 0o755))
	path := filepath.Join(resultDir, "records.jsonl")
	file := must.Get(os.Create(path))(t)
	w := bufio.NewWriter(file)
	for lines := json.NewEncoder(w); len(records) > 0; records = records[1:] {
		must.OK(t, lines.Encode(records[0]))
	}
	must.OK(t, errors.Join(w.Flush(), file.Close()))
	t.Logf("all records: %s", path)
}
