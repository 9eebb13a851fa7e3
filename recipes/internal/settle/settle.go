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

// Values returns the first value of all at once. Later it returns the latest value when the values have
// not changed for the delay, and after ten times the delay at most. all has to end with the context
// that it is called with, which ends when the loop over the sequence is left. If the delay is 0, Values
// returns all values.
func Values[T any](
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

// Changes returns the values of [Values] that differ from the one before.
func Changes[T any](
	ctx context.Context, all func(context.Context) iter.Seq[T], same func(a, b T) bool, delay time.Duration,
) iter.Seq[T] {
	return func(yield func(T) bool) {
		var last T
		first := true
		for value := range Values(ctx, all, same, delay) {
			if !first && same(value, last) {
				continue
			}
			if first, last = false, value; !yield(value) {
				return
			}
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
