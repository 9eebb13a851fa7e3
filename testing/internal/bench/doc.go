// Bench measures docent's locks beside those of other libraries, on one ZooKeeper.
//
//	make bench                                     everything: minutes
//	make bench BENCH='uncontended|handoff'         some scenarios
//	go run ./testing/internal/bench -quick                  whether it works; the figures mean nothing
//
// docs/performance.md tells how to read what it prints.
//
// # How it measures
//
// Each contender is a process of its own: docent, go-zookeeper's Lock and the bare
// wire client are this program again, Curator and kazoo are drivers in their own
// languages. All speak the protocol of package contender. One after another, each
// has a turn at a scenario, and that for several rounds; who begins moves on by
// one from round to round. So what the machine does meanwhile befalls all alike, and a
// ratio of two medians of one run is worth more than either of them.
//
// Before the first round of a scenario each has played it at least once, and
// Curator for as many operations as Java needs to compile them (see peer.warm).
//
// # Adding a scenario
//
// A scenario is an entry in scenarios.go: a load of package contender, the kind of lock
// that each contender brings, the floor, and the bars.
package main
