// Package grpclock serves and sends gRPC calls under a lock. It is a module of its own, so that gRPC
// stays out of docent's requirements.
//
// [UnaryServerInterceptor] and [StreamServerInterceptor] give each call an owner of its own and
// translate errors of locks to status codes. So a handler locks with its context, and returns what
// the lock returns:
//
//	Aborted      another owner holds the lock
//	Unavailable  ZooKeeper can't be reached, or the client is closed
//	Internal     the lock was lost during the call
//
// The peer sees no text of such an error, and none of another error of docent's: it names hosts,
// processes and paths.
//
// [UnaryClientInterceptor] makes calls while the client holds a lock, ends them when the lock is lost,
// and sends the lock's fence. The server reads it with [FenceFromContext].
//
// Stability: may change.
package grpclock
