package register

import (
	"context"
	"errors"
	"iter"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// All returns the state, now and whenever it changes, the latest alone. An outage ends nothing. The
// sequence ends with ctx, with the client, or when the loop is left. An error that no retry can fix
// is the last element.
func (r *Register) All(ctx context.Context) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		shown := int64(-1) // mzxid of what was shown, 0 for no znode
		for {
			w, err := r.watch(ctx)
			switch {
			case ctx.Err() != nil || errors.Is(err, framework.ErrClosed):
				return
			case framework.Retryable(err) || errors.Is(err, framework.ErrReadOnly):
				if r.Client.AwaitConnected(ctx) != nil {
					return
				}
				continue
			case err != nil:
				yield(State{}, err)
				return
			}
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
	for {
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
