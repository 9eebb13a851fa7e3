package membership

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/zkpath"
)

// maxDelays is how many times the delay changes can delay each other.
const maxDelays = 10

// Changes maps each snapshot through valueOf and yields a value whenever it differs from the one before. It
// yields the first value at once, and a later one when the values have not changed for the delay, or after
// ten times the delay. It yields a snapshot with an error at once, and so the next one without. The
// sequence that snapshots returns must end with its context, which ends when the caller leaves the loop.
func Changes[S, T any](
	ctx context.Context, snapshots func(context.Context) iter.Seq2[S, error], valueOf func(S) T,
	same func(a, b T) bool, delay time.Duration,
) iter.Seq2[T, error] {
	all := func(ctx context.Context) iter.Seq[element[T]] {
		return func(yield func(element[T]) bool) {
			for s, err := range snapshots(ctx) {
				if !yield(element[T]{valueOf(s), err}) {
					return
				}
			}
		}
	}
	alike := func(a, b element[T]) bool { return a.err == nil && b.err == nil && same(a.value, b.value) }
	return func(yield func(T, error) bool) {
		var last *element[T]
		for e := range settled(ctx, all, alike, delay) {
			if last != nil && alike(e, *last) {
				continue
			}
			if last = &e; !yield(e.value, e.err) {
				return
			}
		}
	}
}

// An element is a value, or the latest value and why there is no other.
type element[T any] struct {
	value T
	err   error
}

// settled returns the first element of all at once, and later ones when they have settled. If the delay
// is 0, settled returns all elements.
func settled[T any](
	ctx context.Context, all func(context.Context) iter.Seq[element[T]], alike func(a, b element[T]) bool, delay time.Duration,
) iter.Seq[element[T]] {
	if delay == 0 {
		return all(ctx)
	}
	return func(yield func(element[T]) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var follower sync.WaitGroup
		defer follower.Wait()
		defer cancel()
		seen := make(chan element[T])
		follower.Go(func() { // ends with ctx, or with all
			defer close(seen)
			for e := range all(ctx) {
				select {
				case seen <- e:
				case <-ctx.Done():
					return
				}
			}
		})
		e, open := <-seen
		for open && yield(e) {
			e, open = next(seen, e, alike, delay)
		}
	}
}

// next waits for a change from before, and until nothing has changed for the delay. It reports false if
// there are no more elements.
func next[T any](
	seen <-chan element[T], before element[T], alike func(a, b element[T]) bool, delay time.Duration,
) (e element[T], open bool) {
	var quiet, limit <-chan time.Time
	for e = before; ; {
		select {
		case latest, open := <-seen:
			if !open || latest.err != nil || e.err != nil {
				return latest, open
			}
			if alike(latest, e) {
				continue
			}
			if limit == nil {
				limit = time.After(maxDelays * delay)
			}
			quiet, e = time.After(delay), latest
		case <-quiet:
			return e, true
		case <-limit:
			return e, true
		}
	}
}

// In returns those of the znodes, by their paths, that are children of dir, by their names.
func In[V any](dir string, znodes iter.Seq2[string, V]) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for path, v := range znodes {
			if above, name := zkpath.Split(path); above == dir && path != dir && !yield(name, v) {
				return
			}
		}
	}
}
