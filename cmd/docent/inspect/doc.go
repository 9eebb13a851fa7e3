// Package inspect shows the locks of an ensemble: their contenders, the waiters of each holder, and
// faults. It knows the znodes of docent, Curator and kazoo, and writes none.
//
// [Read] reads one lock, and [Scan] all locks below a path. Both return a [Lock] for each directory
// of contenders. [Follow] returns a [Live], whose views follow the locks below a path. [Of] makes a
// Lock of znodes that the caller has read, without any request.
//
// [Deadlocks] finds the owners that wait for each other, and [Diagnose] what else is wrong. Both
// compare two snapshots. [Confirm] takes the second one, and two views of a Live serve as well.
//
//	children of a directory                            kind                 by
//	…-lock-N                                           [Mutex]              docent, Curator, kazoo with Curator's names
//	…-latch-N                                          [Leader]             docent, Curator
//	…__READ__N, …__WRIT__N                             [ReadWrite]          docent, Curator
//	the directories locks and leases (…-lease-N)       [Semaphore]          docent, Curator
//	…__lock__N, …__rlock__N                            [Mutex], [ReadWrite] kazoo
//	znodes without a number, permits in its data,      [Semaphore]          kazoo
//	and waiters next to it, below PATH-__lock__
//	none: the ephemeral znode itself                   [Exclusive]          docent
//	lock, its epoch, and the last runs as data         [Schedule]           docent
//
// The names show by the recipes' own rules which contenders hold and which wait. A LeaderSelector's
// znodes are those of a mutex. A lock without contenders can't be told from an empty directory.
//
// Read and Scan return a view of a moment that has passed. The listing and the znodes' data are read
// one after another, so a contender that left between them is left out.
//
// The client needs the permission to read. Everything in the package may be called concurrently.
package inspect
