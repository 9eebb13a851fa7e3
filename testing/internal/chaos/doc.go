// Package chaos has real clients contend for locks on a real ensemble that suffers, and
// checks the history of what they did. It has no code but its tests.
//
// # Who takes part
//
// Five processes with one client each, their workers, take leases of all kinds of locks,
// by goroutines with owners of their own, and by two that are one owner. Each worker
// reaches each of three servers by a proxy of its own (package zkproxy). They report what
// they do by package history, with times of CLOCK_MONOTONIC, which all processes of one
// machine share, to the test, which also keeps the store that heeds fences.
//
// # What they suffer
//
// One server at a time is killed, restarted, frozen, or cut off: from its peers, both
// ways or one way, or from its clients; the leader as well as a follower. Where that can
// be had, which takes privileges, servers are in network namespaces of their own
// (zktest.WithNamespaces), and what is cut drops packets; elsewhere they reach each other
// by forwarders that hold back what passes, and the report begins with that. Two workers
// at a time are stopped until somebody
// else has taken their lock and written, killed while they hold, have their session
// closed behind their back, or their connections cut, refused, or silenced in one or both
// directions. The seed decides about the order, the targets and the times, not about
// what comes of them.
//
// # What is checked
//
// That every history of a lock is linearizable; that losses come before
// successions; that no late write reaches a register; that every kind of lock is granted
// again after the last fault; that workers end, and leave no znodes. A run in which
// nothing could have been found fails, too. See docs/chaos.md.
package chaos
