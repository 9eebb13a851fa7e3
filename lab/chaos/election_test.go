package chaos_test

import (
	"context"
	"time"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

func (w *worker) campaigns() []errand {
	return []errand{{"candidate 1", w.candidate, shortRest}, {"candidate 2", w.candidate, shortRest}, {"runner", w.runner, longRest}}
}

// A candidate is an election as a lock: its leader has the lock.
type candidate struct{ *leader.Election }

func (c candidate) Lock(ctx context.Context) (*lock.Lease, error) { return c.Campaign(ctx) }

// TryLock campaigns for a moment, because an election has none.
func (c candidate) TryLock(ctx context.Context) (*lock.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	return c.Campaign(ctx)
}

// candidate leads for a while, and resigns. The model is a mutex's: no two lead at a time.
func (w *worker) candidate(ctx context.Context, t task) {
	path := w.path("election")
	w.once(ctx, t, w.entry(history.Mutex(), path, t), candidate{sound(leader.New(w.client, path, leader.WithID(t.owner)))})
}

// termsPath is where all workers lead in turn by Run, whose terms have the model of a mutex, too.
const termsPath = "/chaos/terms"

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

// runner leads whenever it can, for a while. A term ends by itself or when it is lost.
func (w *worker) runner(ctx context.Context, t task) {
	e := sound(leader.New(w.client, termsPath, leader.WithID(t.owner)))
	ctx, cancel := context.WithTimeout(ctx, t.between(longestSession/4, 2*longestSession))
	defer cancel()
	_ = e.Run(ctx, func(ctx context.Context, term *lease.Lease) error {
		ctx, cancel := context.WithTimeout(ctx, t.between(time.Millisecond, 500*time.Millisecond))
		defer cancel()
		w.serve(ctx, t, termsPath, term)
		return nil
	}) // the simulation judges its error
}
