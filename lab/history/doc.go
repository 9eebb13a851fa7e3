// Package history records which client held which lock when. From the record it decides whether
// the locks have kept their guarantees.
//
// A [Recorder] takes leases for a client under test. It records when each was asked for, granted,
// last seen to be held, and ended, on one clock outside ZooKeeper. On one machine [Monotonic] is
// the same clock for all processes. [Assemble] therefore makes one [History] of their records.
//
// # What is checked
//
// [History.Check] asks porcupine for an order of all operations in which the lock behaves as its
// [Model] says: [Mutex], [Reentrant], [ReadWrite], [Multi]. Each operation takes effect at one
// instant between its call and its return. The models also know the fences, which have to grow from
// holder to holder. [History.LossReport] checks by a plain comparison of times that a loss comes
// before the next grant. [History.Registers] checks that nothing was written to a register under a
// lock after its next holder's write.
//
// # When a hold ends
//
// A hold that was released ends between the call and the return of its release. If it was lost, it
// ends after the last moment at which its lease was seen to be held, and before its loss was
// observed. So an observer that waits for a processor accuses no lock, and neither does a stopped
// process, because it sees nothing while it is stopped. If a process was killed, its hold ends at
// any time after it was last seen to be held.
//
// If another client closes a session or deletes a znode, the loss can't come before the next
// grant. [History.Revoke] records that: those holds may have ended from that moment on. The
// registers show what stopped and revoked holders write afterwards.
package history
