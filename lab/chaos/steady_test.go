package chaos_test

import (
	"context"
	"strconv"
	"time"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/lock"
)

// steadyLocks is how many locks always have a holder: mostly one of these is connected to the
// leader.
const steadyLocks = 3

func (w *worker) steadies() (all []errand) {
	for n := range steadyLocks {
		name := strconv.Itoa(n)
		all = append(all, errand{"steady " + name, w.steady(name), longRest})
	}
	return all
}

// steady holds a lock for longer than a session lasts, and sends no request meanwhile: only the
// client's own heartbeats say whether the session exists.
func (w *worker) steady(name string) func(context.Context, task) {
	return func(ctx context.Context, t task) {
		path := "/chaos/steady-" + name + "/" + epoch(guardedEpoch)
		m := sound(lock.NewMutex(w.client, path))
		ctx = lock.ContextWithOwner(ctx, lock.NewOwner(t.owner))
		h, err := w.take(ctx, t, w.entry(history.Mutex(), path, t), m)
		if err != nil {
			return
		}
		end := time.Now().Add(t.between(longestSession/2, 3*longestSession/2))
		for time.Now().Before(end) && ctx.Err() == nil && h.Check() == nil {
			pause(ctx, t.between(time.Millisecond, 4*time.Millisecond))
		}
		release(h)
	}
}
