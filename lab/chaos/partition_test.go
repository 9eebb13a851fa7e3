package chaos_test

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/partition"
)

// All workers are members of one partition. The server of a key has a lease, and its history has the
// model of a mutex.
const partitionRoot = "/chaos/partition"

// partitionKeys are the keys: more than there are workers.
var partitionKeys = []string{"a", "b", "c", "d", "e", "f", "g"}

// movedKey counts that a worker stopped serving a key because another member was to serve it.
const movedKey = "gave a key to another member"

func (w *worker) members() []errand { return []errand{{"member", w.member, longRest}} }

// member serves keys for a while.
func (w *worker) member(ctx context.Context, t task) {
	p := sound(partition.New(w.client, partitionRoot, partitionKeys,
		partition.WithID(w.Name), recipes.WithSettle(t.between(0, time.Second))))
	ctx, cancel := context.WithTimeout(ctx, t.between(longestSession/4, 2*longestSession))
	defer cancel()
	_ = p.Run(ctx, func(ctx context.Context, key string, l *lease.Lease) error { // the simulation judges its error
		w.serve(ctx, t, partitionRoot+"/keys/"+key, l)
		if errors.Is(context.Cause(ctx), partition.ErrMoved) {
			w.did(movedKey)
		}
		return nil
	})
}

// serve has a lease that a recipe has granted until the context ends, and records the hold and its
// release.
func (w *worker) serve(ctx context.Context, t task, group string, l *lease.Lease) {
	e := w.entry(history.Mutex(), group, t)
	h := sound(w.recorder.Lock(ctx, e, func(context.Context) (history.Lease, error) { return l, nil }))
	for ctx.Err() == nil && h.Check() == nil {
		pause(ctx, 20*time.Millisecond)
	}
	release(h)
}
