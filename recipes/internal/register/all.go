package register

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// refusedPause is the time between two attempts to read a znode that may not be read: no server notifies
// of a change of an ACL.
const refusedPause = 5 * time.Second

// All returns the state, now and whenever it changes, the latest alone. An error that no retry can fix
// is returned once, until there is a state again or another error. The sequence ends with ctx, with the
// client, or when the loop is left.
func (r *Register) All(ctx context.Context) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		shown := int64(-1) // mzxid of what was shown, 0 for no znode, -1 for nothing or an error
		failed := ""       // the error that was shown
		for rounds := pace.Rounds(); ; {
			w, err := r.watch(ctx)
			switch {
			case ctx.Err() != nil || errors.Is(err, framework.ErrClosed):
				return
			case framework.Retryable(err) || errors.Is(err, framework.ErrReadOnly):
				if r.Client.AwaitConnected(ctx) != nil || rounds.Wait(ctx, 1) != nil {
					return
				}
				continue
			case err != nil:
				if err.Error() != failed && !yield(State{}, err) {
					return
				}
				shown, failed = -1, err.Error()
				if !pause(ctx, r.Client, refusedPause) {
					return
				}
				continue
			}
			failed = ""
			st, exists := w.Stat()
			if st.Mzxid != shown {
				shown = st.Mzxid
				if !yield(State{exists, w.Data(), st.Version, st.Czxid}, nil) {
					w.Close()
					return
				}
			}
			err = waitqueue.AwaitFired(ctx, r.Client, w)
			w.Close()
			if err != nil {
				return
			}
		}
	}
}

// watch watches the znode, or its creation.
func (r *Register) watch(ctx context.Context) (*framework.Watch, error) {
	for rounds := pace.Rounds(); ; {
		if err := rounds.Wait(ctx, 1); err != nil {
			return nil, err
		}
		w, err := r.Client.Watch(ctx, r.Path, framework.WatchData)
		if !errors.Is(err, framework.ErrNoNode) {
			return w, err
		}
		w, err = r.Client.Watch(ctx, r.Path, framework.WatchExists)
		if err != nil {
			return nil, err
		}
		if _, exists := w.Stat(); !exists {
			return w, nil
		}
		w.Close()
	}
}

// pause waits for d, and reports false if ctx ends first or the client is closed.
func pause(ctx context.Context, c *framework.Client, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return c.State() != framework.Closed
	case <-ctx.Done():
		return false
	}
}
