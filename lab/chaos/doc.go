// Package chaos runs real clients with locks and elections on a real ensemble, injects faults, and
// checks the history of what they did. It consists of tests.
//
// # Who takes part
//
// Five processes with one client each are the workers. Some of their goroutines are owners of their own,
// and two are one owner. Each worker reaches each of three servers by a proxy of its own (package
// zkproxy). The workers report what they do by package history. Their times are of CLOCK_MONOTONIC, which
// all processes of one machine share. The test receives the reports, and keeps the store that checks fences.
//
// # The faults
//
// One server at a time, the leader, a follower or the observer, is killed, restarted, frozen, or cut
// off. It is cut off from its peers, in both directions or in one, or from its clients. In an outage,
// all servers are away for longer than a session. With privileges,
// servers are in network namespaces of their own (zktest.WithNamespaces), and a cut drops packets.
// Without them, the servers reach each other by forwarders that hold back the bytes, and the
// report begins with that.
//
// Three workers at a time have a fault. Some are stopped until another worker has taken their lock
// and written. Some are killed while they hold. Others have their session closed, or their
// connections cut, refused, or silenced in one or both directions. The seed decides the order, the
// targets and the times, but not the outcome.
//
// # What is checked
//
//   - Every history of a lock is linearizable.
//   - Every loss is reported before the next grant.
//   - No late write reaches a register.
//   - Every kind of lock is granted again after the last fault.
//   - Workers end.
//
// A run in which nothing could have been found fails, too. See README.md.
package chaos
