// Package zktest runs real Apache ZooKeeper servers for tests, alone or as an
// ensemble, and breaks them on request.
//
// A [Server] is one Java process with a temporary directory of its own, on the
// loopback interface or in a network namespace, where only this machine reaches it; an [Ensemble] is several of them that elect a leader.
// Both are tuned for tests: ticks of [DefaultTickTime], so that sessions may be
// as short as [DefaultMinSessionTimeout]; no admin server; containers reaped
// every [DefaultContainerInterval]; and, unless [WithFsync] says otherwise, no
// waiting for the disk.
//
// There are three ways in. [Shared] and [SharedEnsemble] hand out the servers
// that a test package starts at most once; they need [Main] in TestMain. [Run]
// and [RunEnsemble] give a test servers of its own, for tests that break them.
// [Start] and [StartEnsemble] do without package testing.
//
//	func TestMain(m *testing.M) { zktest.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		server := zktest.Shared(t)
//		conn := dial(t, server.Addr())
//		…
//	}
//
// # What is needed
//
// A Java runtime (JAVA_HOME, or java in PATH) and ZooKeeper: either a binary
// release unpacked at ZOOKEEPER_HOME or Debian's package zookeeper. The package
// is tested with 3.8 and uses nothing that is not in 3.5. The environment variable ZK_TEST says what a test does without:
//
//	auto       it is skipped, and the package's run ends with one line that says how many were; also when unset
//	required   it fails; with Main, the whole run does at once
//	none       servers are never started: every test that asks for one is skipped, with the same line
//
// That line goes to standard error, which go test shows for a package that
// passes only with -v or when it is run alone: on a build server, say required.
//
// # Faults
//
// A server can be killed, stopped, restarted on its data, frozen and thawed.
// [KillSession] ends somebody's session. An ensemble's members can be cut off from
// each other, both ways ([Ensemble.Isolate]) or one way ([Ensemble.Cut]), while
// clients still reach them all. There are two kinds of network for that:
//
//   - forwarders in this process, by which the members reach each other, and which
//     hold back what they send. They need nothing, and are the default.
//   - with [WithNamespaces], a network namespace for each member and links between
//     them, where a cut drops packets: nothing that was sent meanwhile arrives before
//     the sender's system sends it again, and a new connection waits for its
//     handshake. That is what a real network does. There, members can be cut off from
//     their clients, too ([Ensemble.CutClients]). It needs Linux and privileges;
//     [Namespaces] tells whether it can be had.
//
// # Processes
//
// No server outlives the process that started it, however that ends: a small
// shell process waits on a pipe from it, kills the server at the end of the
// pipe and removes the directory. A server runs in a process group of its own
// and never sees the terminal's interrupt. A network namespace goes with the last
// process that has it, and with it all its interfaces. What is left of one all the
// same, because connections were cut at that moment, goes when the next is made.
//
// # Errors
//
// [ErrMissing] when there is no ZooKeeper or no Java, [ErrStopped] from a method
// that needs a running process, [ErrClosed] after Close, [ErrNoSession] from
// [KillSession], [ErrNoNamespaces] where namespaces are asked for and can't be had. A server that does not come up is reported with the end of its
// log.
//
// # Concurrency
//
// All functions and methods may be called concurrently, save that a test's own
// rules about [testing.TB] hold.
package zktest
