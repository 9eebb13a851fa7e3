package counter

import (
	"context"
	"fmt"
	"math"

	"github.com/docent-go/docent/framework"
)

// A Counter is a number that processes share. Its methods may be called concurrently.
type Counter struct { // immutable
	combiner *combiner
	path     string
}

// New returns the counter at path, and sends nothing yet. Counters that the same client (not another
// view of it) has on one path with the same options combine their calls: see [Counter.Add]. If
// arguments are faulty, New returns all faults.
func New(c *framework.Client, path string, opts ...Option) (*Counter, error) {
	cfg, err := newConfig(c, path, opts)
	if err != nil {
		return nil, recipe.Error(c, "new counter", path, err)
	}
	return &Counter{combinerOf(c, path, cfg.int32, cfg.ACL), path}, nil
}

// Get returns the number, 0 if there is no znode. It shows what the client's server knows, which may
// lag behind the ensemble. Errors: [ErrCorrupt] and the client's.
func (n *Counter) Get(ctx context.Context) (int64, error) {
	v, err := n.combiner.get(ctx)
	return v, recipe.CallError(ctx, n.combiner.register.client, "get", n.path, err)
}

// Add adds delta and returns the result. The addition is applied once; if that is not known, the
// error wraps [framework.ErrUnknownOutcome]. Calls that run at the same time, also of several Counters
// of one client with the same path and options, are written together, and each gets its own result. If ctx ends
// first, the error wraps ctx's, and ErrUnknownOutcome if a request may have been sent. Other errors:
// [ErrOverflow], [ErrCorrupt], [ErrVersion] and the client's.
func (n *Counter) Add(ctx context.Context, delta int64) (int64, error) {
	after, _, err := n.combiner.do(ctx, func(v int64) (int64, bool, error) {
		if delta > 0 && v > math.MaxInt64-delta || delta < 0 && v < math.MinInt64-delta {
			return v, false, ErrOverflow
		}
		return v + delta, true, nil
	})
	return after, recipe.CallError(ctx, n.combiner.register.client, "add to", n.path, err)
}

// Take reserves k numbers that no other call gets, and returns the first of them. The others follow
// it, and the counter then has the last. k is at least 1. If the outcome is unknown, k numbers may
// be left out. Errors are those of [Counter.Add].
func (n *Counter) Take(ctx context.Context, k int64) (int64, error) {
	if k < 1 {
		return 0, recipe.Error(n.combiner.register.client, "take from", n.path, fmt.Errorf("numbers to take %d: must be at least 1", k))
	}
	last, err := n.Add(ctx, k)
	if err != nil {
		return 0, err
	}
	return last - k + 1, nil
}

// Set makes v the number. Errors are those of [Counter.Add].
func (n *Counter) Set(ctx context.Context, v int64) error {
	_, _, err := n.combiner.do(ctx, func(int64) (int64, bool, error) { return v, true, nil })
	return recipe.CallError(ctx, n.combiner.register.client, "set", n.path, err)
}

// CompareAndSet makes v the number if the number is old, and reports whether it was. If it reports
// false without an error, the number was another one at a moment during the call. Errors are those
// of [Counter.Add]; with ErrUnknownOutcome the number may have been set.
func (n *Counter) CompareAndSet(ctx context.Context, old, v int64) (swapped bool, err error) {
	_, swapped, err = n.combiner.do(ctx, func(present int64) (int64, bool, error) {
		if present != old {
			return present, false, nil
		}
		return v, true, nil
	})
	return swapped, recipe.CallError(ctx, n.combiner.register.client, "compare and set", n.path, err)
}

// Path returns the counter's path.
func (n *Counter) Path() string { return n.path }
