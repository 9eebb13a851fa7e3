// Package semaphore has a number of permits for processes on any number of hosts: Curator's
// InterProcessSemaphoreV2. Begin with [New] and [Semaphore.Acquire].
//
// The Fence of a permit's [lease.Lease] does not exclude any client. Several leases are held at a time,
// so a store can't refuse a holder because it has seen a greater fence. Fences tell holders apart
// and give the order of the grants. A write that only a holder may make takes the lease's Guards.
//
// A lease can be lost, as package lease describes: Lost is closed before the ensemble can give its
// permits to another contender, unless the process itself was stopped. Everything may be called
// concurrently.
//
// Stability: stable.
//
// # Order
//
// Permits are granted in the order in which they were asked for. A contender that waits for several
// permits is granted all of them at once, and holds none before. Contenders behind it wait, even if
// they ask for fewer permits. So a contender that asks for many permits is not overtaken forever.
//
// # Nodes
//
// A contender has a znode /path/locks/_c_<uuid>-lock-<number>, and one znode
// /path/leases/_c_<uuid>-lease-<number> for each permit. The first of the queue creates its permits'
// znodes, and is granted when the directory has no more children than there are permits. Go and Java
// processes can share a path. Curator takes several permits one after another, so two Curator
// processes can wait for each other; docent then waits behind them.
//
// # Errors
//
// The errors are [ErrTooMany], [ErrMixed], [ErrCorrupt], [lease.ErrHeld] and [*lease.LostError]. If the context
// ended a wait, the error is a [*lease.WaitError] that wraps the context's. Other errors are the
// client's, as package framework describes them.
package semaphore

import (
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/permits"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// recipe begins the text of errors.
const recipe args.Recipe = "semaphore"

// Errors of semaphores.
var (
	// ErrTooMany is returned at once by Acquire and TryAcquire if the semaphore has fewer permits
	// than the caller asks for, and the number can't change.
	ErrTooMany = errtype.New("more permits than the semaphore has", "too_many")
	// ErrMixed is returned by Acquire and TryAcquire if another kind of lock is on the path, because
	// both would be granted: see docs/guarantees.md#kinds-of-locks-on-one-path.
	ErrMixed = waitqueue.ErrMixed
	// ErrCorrupt is returned by Acquire, TryAcquire and Participants if the znode of
	// [WithPermitsAt] does not hold a number of 4 bytes. No permit is granted then.
	ErrCorrupt = permits.ErrCorrupt
)
