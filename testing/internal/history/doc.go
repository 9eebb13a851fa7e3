// Package history records who held which lock when, and finds out from the record
// whether the locks have kept their guarantees.
//
// A [Recorder] takes leases for a client under test and notes, on one clock outside
// ZooKeeper, when each was asked for, granted, seen to stand, and ended. On one machine
// [Monotonic] is the same clock for all processes, so that their records, put together
// by [Assemble], are one [History].
//
// # What is checked
//
// [History.Check] asks porcupine whether there is an order of all operations, each at
// one instant between its call and its return, in which the lock behaves as its
// [Model] says: [Mutex], [Reentrant], [RWMutex], [Multi]. The models know the
// fences, too, which have to grow from holder to holder. [History.LossReport] checks loss
// before succession by a plain comparison of times. [History.Registers] checks that
// nothing was written to a register under a lock after its next holder's write.
//
// # When a hold ends
//
// A hold that was released ends between the call and the return of its release. One that
// was lost ends after the last moment at which its lease was seen to stand, and before
// its loss was observed. So an observer that the system leaves waiting for a
// processor accuses nobody, and neither does a process that is stopped: while it stands still
// it sees nothing stand. One whose process was killed ends at any time after it was
// last seen to stand.
//
// A session that somebody else closes can't be lost before succession, as little as a
// znode that somebody else deletes. [History.Revoke] takes note of that: those holds
// may have ended from that moment on. What stopped and revoked holders write
// afterwards is what the registers are for.
package history
