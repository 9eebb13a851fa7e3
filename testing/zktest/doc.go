// Package zktest runs real Apache ZooKeeper servers for tests, alone or as an ensemble, and breaks
// them on request.
//
// A [Server] is one Java process with a temporary directory of its own. It is on the loopback
// interface or in a network namespace, where only this machine reaches it. An [Ensemble] is
// several servers that elect a leader. Both are tuned for tests. Ticks are [DefaultTickTime] long,
// so that sessions may be as short as [DefaultMinSessionTimeout]. There is no admin server, and
// containers are reaped every [DefaultContainerInterval]. Servers don't wait for the disk, unless
// [WithFsync] says otherwise.
//
// There are three ways in. [Shared] and [SharedEnsemble] return servers that a test package starts
// at most once; they need [Main] in TestMain. [Run] and [RunEnsemble] give a test servers of its
// own, for tests that break them. [Start] and [StartEnsemble] do without package testing.
//
//	func TestMain(m *testing.M) { zktest.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		server := zktest.Shared(t)
//		conn := dial(t, server.Addr())
//		…
//	}
//
// Stability: may change.
//
// # What is needed
//
// A Java runtime (JAVA_HOME, or java in PATH) and ZooKeeper: either a binary release unpacked at
// ZOOKEEPER_HOME or Debian's package zookeeper. The package is tested with 3.8 and uses nothing
// that is not in 3.5. The environment variable ZK_TEST says what a test does without:
//
//	auto       it is skipped, and the package's run ends with one line that says how many were; also when unset
//	required   it fails; with Main, the whole run does at once
//	none       servers are never started: every test that asks for one is skipped, with the same line
//
// That line goes to standard error, which go test shows for a package that passes only with -v or
// when it is run alone: on a build server, say required.
//
// # Faults
//
// A server can be killed, stopped, restarted on its data, frozen and thawed. [KillSession] ends a
// client's session. An ensemble's members can be cut off from each other, both ways
// ([Ensemble.Isolate]) or one way ([Ensemble.Cut]), while clients still reach them all. There are
// two kinds of network for that.
//
//   - Forwarders in this process are the default and need nothing. The members reach each other by
//     them, and they hold back what the members send.
//   - With [WithNamespaces], each member has a network namespace, with links between them. A cut drops
//     packets, as a real network does. Nothing that was sent meanwhile arrives before the sender's
//     system sends it again, and a new connection waits for its handshake. Members can be cut off
//     from their clients, too ([Ensemble.CutClients]). It needs Linux and privileges; [Namespaces]
//     reports whether it can be used.
//
// # Processes
//
// No server outlives the process that started it, however that ends. A small shell process waits
// on a pipe from it, kills the server at the end of the pipe and removes the directory. A server
// runs in a process group of its own and never sees the terminal's interrupt. A network namespace
// ends with the last process in it, and all its interfaces with it. If connections were cut at
// that moment, some may remain. They are removed when the next namespace is made.
//
// # Errors
//
// [ErrMissing] means that there is no ZooKeeper or no Java. A method that needs a running process
// returns [ErrStopped], and any returns [ErrClosed] after Close. [KillSession] returns
// [ErrNoSession]. [ErrNoNamespaces] means that namespaces are asked for and can't be used. If a
// server does not come up, the error has the end of its log.
//
// # Concurrency
//
// All functions and methods may be called concurrently, within a test's own rules about
// [testing.TB].
package zktest
