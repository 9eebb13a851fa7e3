// Package environments runs one test body in several environments: against an embedded server
// in virtual time, and against real ZooKeeper servers.
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
// What a test says then holds for both: for the real thing, and for the server on
// which days of faults pass in seconds, each request can be met by each fault, and
// timings are exact to the nanosecond.
//
// # The environments
//
//	embedded           a server of package zkserver of its own, in a testing/synctest bubble
//	embedded-ensemble  the same with three front ends that clients are spread over
//	standalone         a real server, as package zktest has it
//	ensemble           a real ensemble of three
//
// ForEach is a subtest by its name. The real ones heed the environment variable
// ZK_TEST as package zktest does, loud skips included: with ZK_TEST=none a package's
// tests run in the embedded environments alone, which takes no time to speak of. The
// real servers are shared by the tests of a package; a test that breaks
// its server asks for one of its own with [Breakable].
//
// # In a bubble
//
// The embedded environments are bubbles of testing/synctest, so their bodies can't call
// t.Run, t.Parallel and t.Deadline, and all that they start has to end in them, which
// t.Cleanup sees to in time: a goroutine that is left fails the test. Nothing in them may
// wait for anything outside, such as a TCP connection. Time stands still while anything
// runs and jumps to the next timer when nothing does, so a loop that asks a server
// again and again costs computing time, and a wait for a channel costs none.
//
// # Concurrency
//
// Everything may be called concurrently, save that what takes a [testing.TB] follows its
// rules: it may fail the test by FailNow.
package zkenv
