// Bench compares docent's locks with those of other libraries, on one ZooKeeper.
//
//	make bench                                     everything: minutes
//	make bench BENCH='uncontended|handoff'         some scenarios
//	make bench BENCHFLAGS='-scale waiters'         a curve: the same at growing sizes
//	go run -C lab ./bench -quick                  whether it works; the figures mean nothing
//
// README.md explains the scenarios and the columns of what it prints.
//
// # How it measures
//
// Each contender is a process of its own. docent, go-zookeeper's Lock and the bare wire client are
// this program again; Curator and kazoo are drivers in their own languages. All speak the protocol
// of package contender. One after another, each has a turn at a scenario, for several rounds. The
// first contender changes from round to round. Background load therefore affects all contenders
// equally, and a ratio of two medians of one run is worth more than either of them.
//
// Before the first round of a scenario each has played it at least once. Curator has played it for
// as many operations as Java needs to compile them (see peer.warm).
//
// # Curves
//
// With -scale the sizes of curve.go grow, in place of scenarios: waiters, held locks, paths, sessions,
// readers, members of a multi-lock, znodes of a cache. Each point has the time, requests, bytes and
// processor time of an operation, and the live memory of a unit. Each curve has servers of its own.
// A contender that fails or takes longer than two minutes at a size ends there. The exponent of a
// column is fitted from a size of 10 on.
//
// # Adding a scenario
//
// A scenario is an entry in scenarios.go: a load of package contender, the kind of lock of each
// contender, the floor, and the bars.
package main
