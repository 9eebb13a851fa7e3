// Package settle thins out a sequence of values that change: it waits until they have not changed for a
// while.
package settle

import (
	"context"
	"iter"
	"sync"
	"time"
)

// maxDelays is how many times the delay changes can delay each other.
const maxDelays = 10

// Changes returns the values that of has of the snapshots, each of which differs from the value before.
// It returns the first value at once. Later it returns the latest value when the values have not
// changed for the delay, and after ten times the delay at most. snapshots has to end with the context
// that it is called with, which ends when the loop over the sequence is left. A snapshot with an error
// changes nothing.
func Changes[S, T any](
	ctx context.Context, snapshots func(context.Context) iter.Seq2[S, error], of func(S) T,
	same func(a, b T) bool, delay time.Duration,
) iter.Seq[T] {
	values := func(ctx context.Context) iter.Seq[T] { return each(snapshots(ctx), of) }
	return func(yield func(T) bool) {
		var last T
		first := true
		for value := range settled(ctx, values, same, delay) {
			if !first && same(value, last) {
				continue
			}
			if first, last = false, value; !yield(value) {
				return
			}
		}
	}
}

// each returns what of makes of each element without an error.
func each[S, T any](all iter.Seq2[S, error], of func(S) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for s, err := range all {
			if err == nil && !yield(of(s)) {
				return
			}
		}
	}
}

// settled returns the first value of all at once, and later ones when they have settled. If the delay
// is 0, settled returns all values.
func settled[T any](
	ctx context.Context, all func(context.Context) iter.Seq[T], same func(a, b T) bool, delay time.Duration,
) iter.Seq[T] {
	if delay == 0 {
		return all(ctx)
	}
	return func(yield func(T) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var follower sync.WaitGroup
		defer follower.Wait()
		defer cancel()
		seen := make(chan T)
		follower.Go(func() { // ends with ctx, or with all
			defer close(seen)
			for value := range all(ctx) {
				select {
				case seen <- value:
				case <-ctx.Done():
					return
				}
			}
		})
		value, open := <-seen
		for open && yield(value) {
			value, open = next(seen, value, same, delay)
		}
	}
}

// next waits for a change from before, and until nothing has changed for the delay. It reports false if
// there are no more values.
func next[T any](
	seen <-chan T, before T, same func(a, b T) bool, delay time.Duration,
) (value T, open bool) {
	var quiet, limit <-chan time.Time
	for value = before; ; {
		select {
		case latest, open := <-seen:
			if !open {
				return value, false
			}
			if same(latest, value) {
				continue
			}
			if limit == nil {
				limit = time.After(maxDelays * delay)
			}
			quiet, value = time.After(delay), latest
		case <-quiet:
			return value, true
		case <-limit:
			return value, true
		}
	}
}
