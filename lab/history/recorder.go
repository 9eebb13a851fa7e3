package history

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// A Lease is what a [Recorder] needs of a lease. A [lock.Lease] is one.
type Lease interface {
	Err() error
	Lost() <-chan struct{}
	Release(ctx context.Context) error
	Fence() int64
	Members() []*lock.Lease
	Path() string
	Guard() framework.TxnOp
}

// An Entry describes an attempt to get a lease.
type Entry struct {
	Model   Model
	Group   string // the locks that are checked together: one lock's path, or a name for several
	Owner   string
	Shared  bool         // the owner may be together with others that share
	Session func() int64 // the client's present session
	Note    string       // is in the record of the grant
}

// aliveEvery is how often a lease is reported to stand, beyond the last time, which is
// reported with its end: for the case that its process is killed.
const aliveEvery = 25 * time.Millisecond

// A Recorder takes leases for one client and records their lives.
type Recorder struct {
	client string       // immutable
	clock  func() int64 // immutable
	emit   func(Record) // immutable
	leases atomic.Int64
}

// NewRecorder returns a recorder for the client of that name, which no other recorder of
// the history has. clock is called concurrently; so is emit, with each record as soon as
// it is known.
func NewRecorder(client string, clock func() int64, emit func(Record)) *Recorder {
	return &Recorder{client: client, clock: clock, emit: emit}
}

// Lock calls acquire and returns the lease that it got, under observation. Where it got
// none, Lock returns its error, and asks nothing of a lease beside an error.
func (r *Recorder) Lock(ctx context.Context, e Entry, acquire func(context.Context) (Lease, error)) (*Hold, error) {
	before := e.Session()
	call := r.clock()
	lease, err := acquire(ctx)
	granted := r.clock()
	if err != nil {
		r.emit(Record{Kind: Failed, Client: r.client, Model: e.Model.Name, Group: e.Group, Call: call, Return: granted, Note: err.Error()})
		return nil, err
	}
	// If a lease is held while the client has a session, the lease is of that session, because an
	// earlier session's leases were lost before. The session of a lease that was lost already
	// isn't certain.
	session := e.Session()
	if session != before && lease.Err() != nil {
		session = 0
	}
	h := &Hold{recorder: r, lease: lease, over: make(chan struct{}), reported: granted}
	h.alive = granted
	if lease.Err() != nil {
		h.alive = call // it was lost before acquire returned, which may have taken long
	}
	h.record = Record{
		Kind: Granted, Client: r.client, Lease: fmt.Sprintf("%s#%d", r.client, r.leases.Add(1)),
		Model: e.Model.Name, Group: e.Group, Owner: e.Owner, Session: session, Shared: e.Shared,
		Locks: e.locksOf(lease), Call: call, Return: granted, Alive: h.alive, Note: e.Note,
	}
	r.emit(h.record)
	go h.watchLoop()
	return h, nil
}

// Count calls held and records its result as the number of leases that the owner has of
// the entry's group, which is one lock.
func (r *Recorder) Count(e Entry, held func() int) {
	call := r.clock()
	n := held()
	r.emit(Record{
		Kind: Counted, Client: r.client, Model: e.Model.Name, Group: e.Group, Owner: e.Owner,
		Count: n, Call: call, Return: r.clock(),
	})
}

// locksOf returns the locks that the lease is of.
func (e Entry) locksOf(lease Lease) []LockRef {
	members := lease.Members()
	if members == nil {
		return []LockRef{{lease.Path(), lease.Fence()}}
	}
	var locks []LockRef
	for _, m := range members {
		locks = append(locks, LockRef{Lock: m.Path(), Fence: m.Fence()})
	}
	return locks
}

// A Hold is a lease under observation.
type Hold struct {
	recorder *Recorder     // immutable
	lease    Lease         // immutable
	record   Record        // immutable; of the grant
	over     chan struct{} // closed by the first that ends the hold

	mu       sync.Mutex // guards following
	alive    int64      // the last moment at which the lease is known to have been held
	reported int64
	ended    bool
}

// Note returns the entry's note.
func (h *Hold) Note() string { return h.record.Note }

// Fence returns the fence of the lease's first lock.
func (h *Hold) Fence() int64 { return h.record.Locks[0].Fence }

// Guard returns the lease's guard.
func (h *Hold) Guard() framework.TxnOp { return h.lease.Guard() }

// lostLimit is how long Check waits for Lost once Err has reported a loss.
const lostLimit = 10 * time.Second

// Check records whether the lease is held, and returns its error if not. A loss is recorded when
// Lost is closed, whatever Err reports earlier, because a caller that waits for Lost is notified
// no sooner. If Lost is not closed within ten seconds, the loss is recorded then.
func (h *Hold) Check() error {
	at := h.recorder.clock() // before the look: a process may be stopped right after it
	err := h.lease.Err()
	if errors.Is(err, lock.ErrLost) {
		h.awaitLost()
	}
	h.mu.Lock()
	if err != nil || h.ended {
		h.mu.Unlock()
		h.lose()
		return err
	}
	h.alive = max(h.alive, at)
	report := at-h.reported > int64(aliveEvery)
	if report {
		h.reported = at
	}
	h.mu.Unlock()
	if report {
		h.recorder.emit(Record{Kind: Standing, Client: h.record.Client, Lease: h.record.Lease, Alive: at})
	}
	return nil
}

// awaitLost returns when Lost is closed, or after a time that is too long.
func (h *Hold) awaitLost() {
	timer := time.NewTimer(lostLimit)
	defer timer.Stop()
	select {
	case <-h.lease.Lost():
	case <-timer.C:
	}
}

// Release releases the lease and records that. If the lease was lost and Lost is not closed yet,
// the record of the loss has the call of the release. A process that was stopped is such a case.
func (h *Hold) Release(ctx context.Context) error {
	select {
	case <-h.lease.Lost():
		h.lose()
	default:
	}
	call := h.recorder.clock()
	alive, first := h.end()
	err := h.lease.Release(ctx)
	if !first {
		return err
	}
	end := Record{
		Kind: Released, Client: h.record.Client, Lease: h.record.Lease,
		Alive: alive, Call: call, Return: h.recorder.clock(),
	}
	if errors.Is(err, lock.ErrLost) {
		end.Kind, end.Note = Lost, err.Error()
	}
	h.recorder.emit(end)
	return err
}

// watchLoop is started by Lock and ends with the hold; no goroutine waits for it. It records a
// loss when it happens, whatever the holder is doing.
func (h *Hold) watchLoop() {
	select {
	case <-h.lease.Lost():
		h.lose()
	case <-h.over:
	}
}

// lose records the loss, unless the hold has ended.
func (h *Hold) lose() {
	at := h.recorder.clock()
	if alive, first := h.end(); first {
		note := ""
		if err := h.lease.Err(); err != nil {
			note = err.Error()
		}
		h.recorder.emit(Record{Kind: Lost, Client: h.record.Client, Lease: h.record.Lease, Alive: alive, Return: at, Note: note})
	}
}

// end ends the hold. It reports whether this call was the first.
func (h *Hold) end() (alive int64, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return h.alive, false
	}
	h.ended = true
	close(h.over)
	return h.alive, true
}
