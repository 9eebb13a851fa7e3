// Package zkenv runs one test body in several environments: on an embedded server in virtual time,
// and on real ZooKeeper servers.
//
//	func TestMain(m *testing.M) { zktest.Main(m) }
//
//	func TestTakesTurns(t *testing.T) {
//		zkenv.ForEach(t, func(t *testing.T, w *zkenv.Env) {
//			first, second := w.Client(t), w.Client(t)
//			...
//		})
//	}
//
// A test then holds for both. On the embedded server days of faults pass in seconds, each request
// can have each fault, and timings are exact to the nanosecond.
//
// Stability: may change.
//
// # The environments
//
//	embedded           a server of package zkserver of its own, in a testing/synctest bubble
//	embedded-ensemble  the same with three front ends that clients are spread over
//	standalone         a real server, as package zktest has it
//	ensemble           a real ensemble of three
//
// Each is a subtest by its name. The real ones obey the environment variable ZK_TEST as package
// zktest does, with its reports of skipped tests. With ZK_TEST=none a package's tests run in the
// embedded environments alone, in almost no time. With ZK_REAL=standalone or ZK_REAL=ensemble
// tests run in that environment alone, and those that are for others are skipped. With ZK_REAL=one a test
// runs on the standalone server alone, or on the ensemble if it can't have that server. The tests of a
// package share the real servers. A test that breaks its server asks for one of its own with [Breakable].
//
// An embedded server is of a version that each test draws: see [DrawVersion]. ZK_EMBEDDED and
// ZK_EMBEDDED_SEED fix it.
//
// # In a bubble
//
// The embedded environments are bubbles of testing/synctest, so their bodies can't call t.Run,
// t.Parallel and t.Deadline. All goroutines that they start have to end in them, which t.Cleanup
// ensures; a goroutine that is left fails the test. Nothing in them may wait for anything outside,
// such as a TCP connection. Time stops while anything runs and jumps to the next timer when
// nothing does. So a loop that asks a server again and again costs computing time, and a wait for
// a channel costs none.
//
// # Concurrency
//
// Everything may be called concurrently. A function that takes a [testing.TB] follows its rules: it
// may fail the test by FailNow.
package zkenv
