// Package permits is the protocol of Apache Curator's InterProcessSemaphoreV2: a queue in the
// directory locks, and one znode for each permit in the directory leases. Package semaphore and the
// SemaphoreMutex of package lock are made of it.
//
// The first contender of the queue creates its permits' znodes, and holds the permits when the
// directory has no more children than there are permits. It then leaves the queue. Children of any
// creator count, as for Curator. Four properties keep "at most n":
//
//   - A listing grants only by the number that was valid when the listing was answered: a watch on the
//     number is valid then, because a server notifies of a change before it replies from a later state.
//   - A listing that grants was read by the session that created the znodes, so it is no older than
//     they are. Of two grants, the later listing shows the znodes of both.
//   - All znodes of an attempt are created by one transaction, so no listing shows a part of them.
//   - A contender that is not the first of the queue has no znode in leases. So the contender that
//     waits for permits waits for holders only.
package permits
