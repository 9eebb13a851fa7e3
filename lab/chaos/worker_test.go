package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/rpc"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/lock"
)

// workerVariable makes a run of the test binary a worker: it has the workerConfig.
const workerVariable = "CHAOS_WORKER"

// A workerConfig is what a worker is told at its start.
type workerConfig struct {
	Name    string
	Connect string // of the proxies in front of the ensemble
	Store   string // where the store that checks fences listens
	Seed    uint64
	Session time.Duration // its session timeout
}

// epochLength is how long workers use one set of paths. Histories of one path that are
// short are checked quickly, and directories come and go.
const epochLength = 10 * time.Second

// guardedEpoch is the epoch of the lock whose holders are stopped. It is longer, so that another
// worker takes the lock from them.
const guardedEpoch = time.Minute

// Session timeouts are drawn between two bounds. Servers with ticks of two seconds grant no less
// than the first. With the second, some sessions end within a run.
const shortestSession, longestSession = 4 * time.Second, 10 * time.Second

// A worker is a process with one client, whose goroutines use locks of all kinds.
type worker struct {
	workerConfig
	client   *framework.Client
	recorder *history.Recorder
	store    *rpc.Client

	mu  sync.Mutex // guards following
	out io.Writer
}

// runWorker works until the end of standard input, and returns the process's exit code.
func runWorker(config string) int {
	var w worker
	if err := json.Unmarshal([]byte(config), &w.workerConfig); err != nil {
		return complain(err)
	}
	w.out = os.Stdout
	w.recorder = history.NewRecorder(w.Name, history.Monotonic, w.emit)
	var err error
	if w.store, err = rpc.Dial("tcp4", w.Store); err != nil {
		return complain(err)
	}
	w.client, err = framework.NewClient(w.Connect, framework.WithSessionTimeout(w.Session))
	if err != nil {
		return complain(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the run closes it at its end
		cancel()
	}()
	w.work(ctx)
	if err := w.client.Close(); err != nil {
		return complain(err)
	}
	return 0
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "chaos worker:", err)
	return 1
}

// emit writes a report at once: what has not been written when the process is killed has
// not happened.
func (w *worker) emit(r history.Record) {
	r.Client = w.Name
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.out.Write(append(line, '\n')) // whoever reads may be gone, and ends this process
}

// A task is one goroutine of a worker.
type task struct {
	owner string // its name in the history; two that are one owner have one
	rand  *rand.Rand
}

// did counts that the worker has done something that it checks by itself.
func (w *worker) did(what string) { w.emit(history.Record{Kind: did, Note: what}) }

// An errand is what one goroutine of a worker does again and again.
type errand struct {
	owner string // its name in the history, after the worker's
	run   func(context.Context, task)
	rest  time.Duration // the longest pause after it
}

// The pauses after operations. The long one is for operations that could keep others waiting
// forever.
const shortRest, longRest = 25 * time.Millisecond, 250 * time.Millisecond

// work runs all errands until ctx ends.
func (w *worker) work(ctx context.Context) {
	var all sync.WaitGroup
	for _, errand := range slices.Concat(w.locks(), w.steadies(), w.campaigns()) {
		t := task{w.Name + " " + errand.owner, rand.New(rand.NewPCG(w.Seed, uint64(crc32.ChecksumIEEE([]byte(errand.owner)))))}
		all.Go(func() {
			for ctx.Err() == nil {
				errand.run(ctx, t)
				pause(ctx, t.between(errand.rest/10, errand.rest))
			}
		})
	}
	all.Wait()
}

// path returns the present path for locks of a kind.
func (w *worker) path(kind string) string { return "/chaos/" + kind + "/" + epoch(epochLength) }

// epoch returns the number of the present epoch.
func epoch(length time.Duration) string {
	return strconv.FormatInt(history.Monotonic()/int64(length), 10)
}

func (w *worker) entry(m history.Model, group string, t task) history.Entry {
	return history.Entry{
		Model: m, Group: group, Owner: t.owner,
		Session: func() int64 { return w.client.Session().ID },
	}
}

// patience bounds a wait: longer than a dead holder's session lasts.
const patience = 3 * longestSession

// lingers is the note of a hold that is long enough for a fault to hit it.
const lingers = "lingers"

// take attempts to get the lock, in one of several ways.
func (w *worker) take(ctx context.Context, t task, e history.Entry, l lock.Locker) (*history.Hold, error) {
	limit := patience
	acquire := l.Lock
	switch t.rand.IntN(10) {
	case 0, 1:
		acquire = l.TryLock
	case 2, 3:
		limit = t.between(5*time.Millisecond, 300*time.Millisecond)
	case 4, 5, 6: // so that a dead holder's lock does not keep all others
		limit = t.between(500*time.Millisecond, 4*time.Second)
	}
	if t.rand.IntN(12) == 0 {
		e.Note = lingers
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return w.recorder.Lock(ctx, e, func(ctx context.Context) (history.Lease, error) { return acquire(ctx) })
}

// hold keeps a lease for a moment, checks it, and reports whether it is still held.
func (w *worker) hold(h *history.Hold, t task) bool {
	end := time.Now().Add(t.between(2*time.Millisecond, 12*time.Millisecond))
	if h.Note() == lingers {
		end = time.Now().Add(t.between(300*time.Millisecond, 900*time.Millisecond))
	}
	for time.Now().Before(end) && h.Check() == nil {
		pause(context.Background(), t.between(time.Millisecond, 4*time.Millisecond))
	}
	if h.Note() == lingers {
		w.insist(h)
	}
	return h.Check() == nil
}

// insist keeps a lease until a server has answered, or it is lost: a holder that is cut
// off in the middle of its work.
func (w *worker) insist(h *history.Hold) {
	for h.Check() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		_, _, err := w.client.Exists(ctx, "/")
		cancel()
		if err == nil {
			return
		}
		pause(context.Background(), 10*time.Millisecond)
	}
}

// releaseLimit bounds a release. The rest then continues in the background.
const releaseLimit = 2 * time.Second

func release(h *history.Hold) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	_ = h.Release(ctx) // a loss is in the record, and a connection may be missing
}

func (t task) between(least, most time.Duration) time.Duration {
	return least + time.Duration(t.rand.Int64N(int64(most-least)))
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
