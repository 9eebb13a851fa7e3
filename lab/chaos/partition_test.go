package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/partition"
)

// All workers are members of one partition. The server of a key has a lease, and its history has the
// model of a mutex.
const partitionRoot, keysDir = "/chaos/partition", "/chaos/partition/keys/"

// partitionKeys are the keys: more than there are workers.
var partitionKeys = []string{"a", "b", "c", "d", "e", "f", "g"}

// movedKey counts that a worker stopped serving a key because another member was to serve it.
const movedKey = "gave a key to another member"

func (w *worker) members() []errand { return []errand{{"member", w.member, longRest}} }

// member serves keys for a while.
func (w *worker) member(ctx context.Context, t task) {
	p, err := partition.New(w.client, partitionRoot, partitionKeys,
		partition.WithID(w.Name), recipes.WithSettle(t.between(0, time.Second)))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(ctx, t.between(longestSession/4, 2*longestSession))
	defer cancel()
	err = p.Run(ctx, func(ctx context.Context, key string, l *lease.Lease) error { return w.serveKey(ctx, t, key, l) })
	if ctx.Err() == nil {
		w.found("liveness", "Run of the partition ended by itself: %v", err)
	}
}

func (w *worker) serveKey(ctx context.Context, t task, key string, l *lease.Lease) error {
	w.serve(ctx, t, keysDir+key, l)
	if errors.Is(context.Cause(ctx), partition.ErrMoved) {
		w.did(movedKey)
	}
	return nil
}

// serve has a lease that a recipe has granted until the context ends, and records the hold and its
// release.
func (w *worker) serve(ctx context.Context, t task, group string, l *lease.Lease) {
	e := w.entry(history.Mutex(), group, t)
	h, err := w.recorder.Lock(ctx, e, func(context.Context) (history.Lease, error) { return l, nil })
	if err != nil {
		panic(err)
	}
	for ctx.Err() == nil && h.Check() == nil {
		pause(ctx, 20*time.Millisecond)
	}
	release(h)
}

// checkShares is the validator of "every key is served" and "equal shares", once all is well: at some
// moment the workers serve all keys, and none serves two keys more than another.
func (r *run) checkShares() {
	var names []string
	for _, s := range r.slots {
		names = append(names, s.current().name)
	}
	var served map[string]int
	if !await(context.Background(), repairLimit, func() bool {
		served = r.board.shares()
		return areEqual(served, names)
	}) {
		r.fail(fmt.Errorf("equal shares: %d keys of %v are served unequally %v after the last fault: %v",
			len(partitionKeys), names, repairLimit, served))
	}
}

// areEqual reports whether the members serve all keys, and as many as each other, or one more.
func areEqual(served map[string]int, members []string) bool {
	sum := 0
	for _, m := range members {
		n := served[m]
		if sum += n; n < len(partitionKeys)/len(members) || n > (len(partitionKeys)+len(members)-1)/len(members) {
			return false
		}
	}
	return sum == len(partitionKeys)
}

// serveLocked records which lease each key is served by. It needs mu.
func (b *board) serveLocked(r history.Record) {
	switch {
	case r.Kind == history.Granted && strings.HasPrefix(r.Group, keysDir):
		b.keys[r.Group] = r
	case r.Kind == history.Lost, r.Kind == history.Released:
		for key, grant := range b.keys {
			if grant.Lease == r.Lease {
				delete(b.keys, key)
			}
		}
	}
}

// shares returns how many keys each worker serves. A worker that was killed serves its keys until the
// next grant.
func (b *board) shares() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := make(map[string]int)
	for _, grant := range b.keys {
		counts[grant.Client]++
	}
	return counts
}
