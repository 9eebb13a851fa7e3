// Package locktest tests locks. It checks whether a [lock.Locker] keeps what the interface and its
// leases promise. The lock may be one of package lock or your own that is built on one.
//
//	func TestMain(m *testing.M) { zktest.Main(m) }
//
//	func TestAccountLock(t *testing.T) {
//		locktest.Run(t, func(t testing.TB, c *framework.Client, path string) lock.Locker {
//			return account.NewLock(c, path)
//		}, locktest.Fair())
//	}
//
// [Run] has one subtest per promise, named by its sentence. Each runs in all environments of
// package zkenv: an embedded server in virtual time, and real ZooKeeper servers as ZK_TEST says.
// Some promises are checked for every request of an acquire and a release, with every fault that
// it can have.
//
// Stability: may change.
//
// # The oracle
//
// An [Oracle] decides whether a lock excludes. It is a registry of holders outside ZooKeeper, so
// it can't share a mistake with the lock. A user's own tests can use it too.
//
// # What is not checked
//
// Promises that only some kinds of locks make are checked where an option says that they do:
// [Fair], [Reentrant], [Shared]. With [NoTry], a lock without TryLock isn't checked for it.
// Package locktest doesn't measure speed or cost.
package locktest
