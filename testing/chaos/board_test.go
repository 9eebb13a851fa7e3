package chaos_test

import (
	"context"
	"sync"
	"time"

	"github.com/docent-go/docent/testing/history"
)

// A board collects the workers' records, and tells those who wait for something to happen.
type board struct {
	mu      sync.Mutex // guards following
	records []history.Record
	alive   map[string]history.Record // the latest of each lease that was seen to stand
	ended   map[string]bool           // leases
	grants  map[string]int64          // when each model was last asked for and granted
	losses  map[string]int64          // when each client last observed one
	linger  chan history.Record       // grants that are long; nobody has to take them
}

func newBoard() *board {
	return &board{
		alive: make(map[string]history.Record), ended: make(map[string]bool),
		grants: make(map[string]int64), losses: make(map[string]int64),
		linger: make(chan history.Record),
	}
}

func (b *board) add(r history.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch r.Kind {
	case history.Standing: // only the last one matters, and there are many
		b.alive[r.Lease] = r
		return
	case history.Granted:
		b.grants[r.Model] = max(b.grants[r.Model], r.Call)
		if r.Note == lingers {
			select {
			case b.linger <- r:
			default:
			}
		}
	case history.Lost:
		b.losses[r.Client] = max(b.losses[r.Client], r.Return)
		b.ended[r.Lease] = true
	case history.Released:
		b.ended[r.Lease] = true
	}
	b.records = append(b.records, r)
}

// all returns all records so far.
func (b *board) all() []history.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	var alive []history.Record
	for _, r := range b.alive {
		alive = append(alive, r)
	}
	return append(b.records[:len(b.records):len(b.records)], alive...)
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
	for _, m := range []history.Model{history.Mutex(), history.Reentrant(), history.ReadWrite(), history.Multi()} {
		if b.grants[m.Name] <= at {
			return false
		}
	}
	return true
}

// pollEvery is how often something is looked for that nobody announces.
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
