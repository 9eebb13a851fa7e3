// Package leader elects one of many candidates: Curator's LeaderLatch and LeaderSelector.
//
// The leader has a [lease.Lease] and can lose it, as package lease describes. Lost is closed before
// another candidate can lead, unless the process itself was stopped. For that case there are Fence,
// the number of the term, and Guard. Begin with [New] and [Election.Run], the short form; [Election.Campaign]
// returns the lease. An outage alone ends no term: see recipes.WithLossPolicy. Everything may be called
// concurrently.
//
// Stability: stable.
//
// # Nodes
//
// A candidate is an ephemeral sequential znode, /path/_c_<uuid>-latch-<number> of [Latch] and
// …-lock-<number> of [Selector]. The lowest number leads, and every other candidate watches its
// predecessor. Go and Java processes take turns on one path if their format is the same.
//
// # Errors
//
// [ErrMixed], [*lease.LostError]; a [*lease.WaitError], which wraps the context's error, if the context
// ended a wait; and the client's errors, as package framework describes them.
package leader

import (
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// recipe begins the text of errors.
const recipe args.Recipe = "leader"

// ErrMixed is returned if candidates of the other format, or contenders of another kind of lock, are
// on the path: both would be granted.
var ErrMixed = waitqueue.ErrMixed
