package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
)

// Confirm reads again the locks of first that take part in a possible deadlock, or that a process holds and
// waits for, and returns first with them as they are now. It sends no request if there are none. Locks that are
// free by then are left out. Pass both snapshots to [Diagnose].
//
// The two snapshots must be of one client, whose reads never go back in time. ctx and errors are as
// with [Scan].
func Confirm(ctx context.Context, c *framework.Client, first Snapshot) (second Snapshot, err error) {
	defer func() { err = callError(ctx, c, "confirm", "/", err) }()
	if err := clientFault(c); err != nil {
		return Snapshot{}, err
	}
	second = Snapshot{At: time.Now(), Unread: first.Unread, Large: first.Large, Complete: first.Complete}
	suspects := make(map[string]bool)
	deadlocks := Deadlocks(first, first)
	for _, f := range append(deadlocks, selfWaitsOfProcesses(first, first, deadlocks)...) {
		for _, e := range f.Edges {
			suspects[e.Lock] = true
		}
	}
	if len(suspects) > 0 {
		if err := c.Sync(ctx, "/"); err != nil {
			return Snapshot{}, err
		}
	}
	r := &reader{client: c}
	dirs, err := r.list(ctx, slices.Sorted(maps.Keys(suspects)))
	if err != nil {
		return Snapshot{}, err
	}
	again, err := r.locksOf(ctx, dirs)
	if err != nil {
		return Snapshot{}, err
	}
	for _, l := range first.Locks {
		if !suspects[l.Path] {
			again = append(again, l)
		}
	}
	second.Locks = slices.DeleteFunc(again, func(l Lock) bool { return l.Kind == "" })
	slices.SortFunc(second.Locks, func(a, b Lock) int { return cmp.Compare(a.Path, b.Path) })
	return second, nil
}
