// Package lock has distributed locks on ZooKeeper, for processes on any number
// of hosts, with the znodes of Apache Curator: Java processes that use Curator
// and Go processes that use this package exclude each other on one path.
//
// A lock can be lost. It is tied to a ZooKeeper session, and the ensemble ends
// a session that it has not heard of for the session timeout, whatever the
// process is doing. A lock is therefore held by a [Lease] that tells when it is
// lost, and work under a lock has to heed that: [Do] hands it a context that ends.
//
// # Holding
//
// [Do] is the short form: it locks, calls a function, and releases; what needs the lease
// under it has [LeaseFromContext].
// [Mutex.Lock] waits for the mutex, [Mutex.TryLock] does not; both return a
// Lease. A context bounds the call that it is passed to, never the lease. The two
// sides of a [RWMutex] are Lockers like it: many owners read, or one writes. So
// are an [UnfairMutex], which is the cheapest to try and unfair, and a
// [SemaphoreMutex], for paths that it shares with Curator's. Both know no owners.
// A [Multi] holds several locks together, all or none, without deadlock.
//
// Anybody may ask a holder to let go, with [Revoke]; a lock heeds it by [WithRevocation].
//
// # Reentrancy
//
// A [Mutex] is reentrant: the owner of a call is the [Owner] that its context
// carries and, if it carries none, the calling goroutine. An owner that has the
// mutex gets further leases of it at once, and the lock is given back with the
// last. Lock counts are kept per client, path and owner, so two Mutex values on
// one path agree.
//
// A goroutine's ownership never travels: a goroutine that it starts is another
// owner, and waits, for ever if its parent waits for it. Where several
// goroutines are to be one party, say so:
//
//	ctx = lock.ContextWithOwner(ctx, lock.NewOwner("request 17"))
//
// [Lease.Release] is a capability: whoever has the lease may release it.
// [Mutex.Unlock] checks identity: a stranger gets [ErrNotOwner].
//
// # Losing a lock
//
// A lease is lost when its session is over, when somebody deletes its znode,
// and when the client is closed. [Lease.Lost] is closed then, [Lease.Err] tells
// why, and contexts of [Lease.Context] end. Where there is no connection the client
// goes by its own clock, and gives the session up before the ensemble can: so
// Lost is closed before anybody else can be granted the lock. Only a process that is
// stopped as a whole (a suspended machine, SIGSTOP) can't be told in time. What it
// does when it wakes has to be stopped by what it writes to: by the number of
// [Lease.Fence], or, for data in ZooKeeper, by [Lease.Guard].
//
// # Telemetry
//
// Locks tell by spans, metrics and log lines of their client's providers and
// logger who waits, how long, and behind whom: see docs/observability.md. A
// lock's znode leads to the trace of the call that made it, see [WithoutTraceparent].
//
// # Concurrency
//
// Everything here may be used concurrently.
//
// # Panics
//
// If a function of the user's panics on the caller's goroutine, as those of
// [WithQueuePosition] and [Do] do, the panic reaches the caller, and nothing of the attempt
// stays in anybody's way. On a goroutine of docent's, as that of [WithRevocation], the panic
// is logged as an error, and docent goes on as if the function had returned.
//
// # Errors
//
// [ErrHeld], [ErrNotOwner], [ErrUpgrade], [ErrReleased], [ErrNoGuard], [*LostError]; a [*WaitError], which
// wraps the context's error, if that ended a wait, and the context's error if it ended another call; and
// the client's errors, as package framework describes them.
//
// # Nodes
//
// A contender for the mutex at /path is an ephemeral sequential znode
// /path/_c_<uuid>-lock-<number>. The lowest number has the lock; each of the
// others watches the one before it. Those for a [RWMutex] are named
// …-__READ__<number> and …-__WRIT__<number>; a reader watches the nearest
// writer ahead of it. A [SemaphoreMutex] has such a queue at /path/locks, and the
// znode of a lease at /path/leases/_c_<uuid>-lease-<number>. An [UnfairMutex] has
// one znode, at /path itself. Directories and missing parents are containers, which the ensemble
// removes when they are empty.
package lock
