// Package lock has distributed locks on ZooKeeper, for processes on any number of hosts. Its znodes
// are Apache Curator's: Java processes with Curator and Go processes with this package exclude each
// other on one path.
//
// A lock can be lost. It belongs to a ZooKeeper session. If the ensemble receives nothing from a
// client for the session timeout, it ends the session, whatever the process is doing. A lock is
// therefore held by a [Lease] that reports its loss, and work under a lock must stop then: [Do]
// passes it a context that ends.
//
// In short:
//
//	mutex, err := lock.NewMutex(client, "/orders/4711") // once; it connects to nothing
//	…
//	err = lock.Do(ctx, mutex, func(ctx context.Context, l *lock.Lease) error {
//		return save(ctx, order, l.Fence()) // ctx ends if the lock is lost
//	})
//
// Where to go on:
//
//   - work that another process may do instead: [Mutex.TryLock] and [ErrHeld]
//   - a loss: [lease.Lease.Lost] and [ErrLost]; late writes: [lease.Lease.Fence], [lease.Lease.Guard]
//   - other locks: [NewRWMutex], [NewUnfairMutex], [NewMulti], [NewLocal], [NewSemaphoreMutex]
//   - goroutines that share a lock: [ContextWithOwner]; HTTP handlers under locks: package httplock
//
// Stability: stable.
//
// # Holding
//
// [Do] is the short form: it locks, calls a function with the lease, and releases. [Mutex.Lock]
// waits for the mutex, [Mutex.TryLock] does not; both return a Lease. A context bounds the call that
// it is passed to, never the lease.
//
// Each lock is a [Locker]. The two sides of an [RWMutex] are: many owners read, or one writes. An
// [UnfairMutex] is the cheapest to try, and unfair. A [SemaphoreMutex] is for paths that it shares
// with Curator's. Both have no owners. A [Multi] holds several locks together, all or none, without
// deadlock. A [Local] hands a mutex on within a process.
//
// Any client may ask a holder to release, with [Revoke]. A lock with recipes.WithRevocation
// reports the request to its holder.
//
// # Reentrancy
//
// A [Mutex] is reentrant: the owner of a call is the [Owner] that its context carries and, if it
// carries none, the calling goroutine. An owner that holds the mutex gets further leases of it at
// once, and releases the mutex with the last one. Lock counts are kept per client, path and owner,
// so two Mutex values on one path agree.
//
// A goroutine's ownership never travels. A goroutine that it starts is another owner and waits,
// forever if its parent waits for it. To let several goroutines be one owner, say so:
//
//	ctx = lock.ContextWithOwner(ctx, lock.NewOwner("request 17"))
//
// A server has to do so for each request: net/http serves all requests of a connection on one
// goroutine, so a request would re-enter what the previous one has leaked. Package httplock does it.
//
// With [WithoutReentry] each call is an owner of its own instead.
//
// [lease.Lease.Release] is a capability: any goroutine that has the lease may release it. [Mutex.Unlock]
// checks identity: another owner gets [ErrNotOwner].
//
// # Losing a lock
//
// A lease is lost when its session is over, when another client deletes its znode, and when the
// client is closed. [lease.Lease.Lost] is then closed, [lease.Lease.Err] returns the cause, and
// contexts of [lease.Lease.Context] end. Without a connection, the client uses its own clock, and
// abandons the session before the ensemble can end it. So Lost is closed before another client can be
// granted the lock.
//
// The exception is a process that is stopped as a whole (a suspended machine, SIGSTOP): it can't be
// notified in time. The storage has to refuse its late writes, by the number of [lease.Lease.Fence] or,
// for data in ZooKeeper, by [lease.Lease.Guard].
//
// # Telemetry
//
// Locks report waits, their durations and the blocking contenders by spans, metrics and log lines of
// their client's providers and logger: see docs/observability.md. A lock's znode leads to the trace
// of the call that made it: see [WithoutTraceparent].
//
// # Concurrency
//
// Everything here may be used concurrently.
//
// A path has one kind of lock: a contender of another kind gets [ErrMixed]. docs/guarantees.md has the
// kinds that share a path, docs/adr/0012-panics-in-user-functions.md what a user's panic does.
//
// # Errors
//
// The sentinels are [ErrHeld], [ErrMixed], [ErrNotOwner], [ErrUpgrade], [ErrReleased], [ErrCounterEnd] and
// [lease.ErrNoGuard]. A loss is a [*LostError]. If a context ends a call, the error wraps the context's;
// if it ends a wait, the error is a [*WaitError]. Other errors are the client's, as package
// framework describes them.
//
// # Nodes
//
// A contender for the mutex at /path is an ephemeral sequential znode
// /path/_c_<uuid>-lock-<number>. The lowest number holds the lock; every other contender watches its
// predecessor. Contenders for an [RWMutex] are named …-__READ__<number> and …-__WRIT__<number>; a
// reader watches the nearest writer ahead of it. A [SemaphoreMutex] has such a queue at /path/locks,
// and the znode of a lease at /path/leases/_c_<uuid>-lease-<number>. An [UnfairMutex] has one znode,
// at /path itself. Directories and missing parents are containers, which the ensemble removes when
// they are empty.
package lock
