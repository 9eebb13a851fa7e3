// Package locktest tests locks: it checks whether a [lock.Locker], one of package lock
// or your own that is built on one, keeps what the interface and its leases promise.
//
//	func TestMain(m *testing.M) { zktest.Main(m) }
//
//	func TestAccountLock(t *testing.T) {
//		locktest.Run(t, func(t testing.TB, c *framework.Client, path string) lock.Locker {
//			return account.NewLock(c, path)
//		}, locktest.Fair())
//	}
//
// [Run] has one subtest per promise, named by its sentence, and each runs in all
// environments of package zkenv: an embedded server in virtual time, and real ZooKeeper
// servers as ZK_TEST says. Some promises are checked for every request that
// an acquire and a release make, against every fault that can meet it.
//
// # The oracle
//
// An [Oracle] is who says whether a lock excludes: a registry of holders outside
// ZooKeeper, which can't be wrong about the lock in the way that the lock is. Tests of
// a user's own can use it too.
//
// # What is not checked
//
// What only some kinds of locks promise is checked where an option says that they do:
// [Fair], [Reentrant], [Shared]; what a lock has not, where [NoTry] says so. Whether the lock is quick, and what it costs, is not
// looked at.
package locktest
