// Package httplock serves HTTP requests under a lock. It needs the standard library only.
//
// [New] wraps a function so that each request acquires a lock first. Each request has an
// [lock.Owner] of its own. Without one the goroutine would own the lock, and net/http serves all
// requests of a connection on one goroutine: a request would re-enter what the previous request of
// its connection has leaked. [WithOwner] gives owners to handlers that lock by themselves, and
// reports what such a handler leaks.
//
// Stability: stable.
//
// # Answers
//
//	409 Conflict               another owner holds the lock
//	503 Service Unavailable    ZooKeeper can't be reached, the client is closed, or the request's
//	                           context ended before the lock was held
//	500 Internal Server Error  the lock was lost during the request; any other error
//
// An answer says what the function has done, and nothing that happened after it has returned. There
// is no 200 for a function that was not called. If the lock is lost after the function has returned,
// or if an outage delays the release, the function's own answer is sent.
//
// [Status] is that table, for services that write their answers by themselves.
package httplock
