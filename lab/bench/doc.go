// Bench compares docent's locks with those of other libraries, on one ZooKeeper.
//
//	make bench                                     everything: minutes
//	make bench BENCH='uncontended|handoff'         some scenarios
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
// # Adding a scenario
//
// A scenario is an entry in scenarios.go: a load of package contender, the kind of lock of each
// contender, the floor, and the bars.
package main
