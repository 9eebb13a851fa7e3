package chaos_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/lab/history"
)

// A board collects the workers' records, and tells those who wait for something to happen.
type board struct {
	mu      sync.Mutex // guards following
	records []history.Record
	alive   map[string]history.Record // the latest of each lease that was seen to stand
	ended   map[string]bool           // leases
	models  map[string]string         // of leases
	grants  map[string]int64          // when each model was last asked for and granted
	losses  map[string]int64          // when each client last observed one
	lost    map[string]int            // how many of each model
	wanted  []*want
	counts  map[string]int // what workers have counted
}

// A worker counts that it has done what the note says. That is no part of a history.
const did history.Kind = "did"

// A want is a fault that waits for a worker that gets a lock and lingers with it.
type want struct {
	fits func(history.Record) bool
	got  chan history.Record // capacity 1: it is wanted once
}

func newBoard() *board {
	return &board{
		alive: make(map[string]history.Record), ended: make(map[string]bool), models: make(map[string]string),
		grants: make(map[string]int64), losses: make(map[string]int64),
		lost: make(map[string]int), counts: make(map[string]int),
	}
}

func (b *board) add(r history.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch r.Kind {
	case did:
		b.counts[r.Note]++
		return
	case history.Standing: // only the last one matters, and there are many
		b.alive[r.Lease] = r
		return
	case history.Granted:
		b.grants[r.Model] = max(b.grants[r.Model], r.Call)
		b.models[r.Lease] = r.Model
		b.offerLocked(r)
	case history.Lost:
		b.losses[r.Client] = max(b.losses[r.Client], r.Return)
		b.ended[r.Lease] = true
		b.lost[b.models[r.Lease]]++
	case history.Released:
		b.ended[r.Lease] = true
	}
	b.records = append(b.records, r)
}

// offerLocked gives a grant to whoever waits for one like it. It needs mu.
func (b *board) offerLocked(r history.Record) {
	if r.Note != lingers {
		return
	}
	i := slices.IndexFunc(b.wanted, func(w *want) bool { return w.fits(r) })
	if i >= 0 {
		b.wanted[i].got <- r
		b.wanted = slices.Delete(b.wanted, i, i+1)
	}
}

// lingering waits for a grant that fits, whose holder lingers.
func (b *board) lingering(ctx context.Context, fits func(history.Record) bool) (history.Record, bool) {
	w := &want{fits, make(chan history.Record, 1)}
	b.mu.Lock()
	b.wanted = append(b.wanted, w)
	b.mu.Unlock()
	select {
	case r := <-w.got:
		return r, true
	case <-ctx.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		b.wanted = slices.DeleteFunc(b.wanted, func(other *want) bool { return other == w })
		return history.Record{}, false
	}
}

// leastLostLocked returns the model whose locks were lost least often so far. It needs mu.
func (b *board) leastLostLocked() string {
	least := allModels()[0].Name
	for _, m := range allModels() {
		if b.lost[m.Name] < b.lost[least] {
			least = m.Name
		}
	}
	return least
}

func allModels() []history.Model {
	return []history.Model{history.Mutex(), history.Reentrant(), history.ReadWrite(), history.Multi()}
}

// all returns all records so far.
func (b *board) all() []history.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	var alive []history.Record
	for _, r := range b.alive {
		alive = append(alive, r)
	}
	return append(slices.Clip(b.records), alive...)
}

// counted returns what workers have counted so far.
func (b *board) counted() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.counts)
}

func (b *board) hasEnded(lease string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended[lease]
}

// lostSince reports whether the client has observed a loss since a moment.
func (b *board) lostSince(client string, at int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.losses[client] > at
}

// grantedSince reports whether a lock of each model was asked for and granted since a
// moment.
func (b *board) grantedSince(at int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range allModels() {
		if b.grants[m.Name] <= at {
			return false
		}
	}
	return true
}

// pollEvery is the interval of checks for what no event reports.
const pollEvery = 20 * time.Millisecond

// await returns when cond is true, or false when ctx has ended or the limit is over.
func await(ctx context.Context, limit time.Duration, cond func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !cond() {
		if ctx.Err() != nil {
			return false
		}
		pause(ctx, pollEvery)
	}
	return true
}
