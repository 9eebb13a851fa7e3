package main

import "slices"

// The contenders.
const (
	wire      = "wire"           // the floor: one request after another, but for what its words say
	pipelined = "wire-pipelined" // the floor with as many requests at once as docent has workers
	docent    = "docent"
	curator   = "Curator"
	gozk      = "go-zookeeper"
	kazoo     = "kazoo"
	before    = "docent-before" // docent at an earlier commit, where a run compares the two
	memories  = 1000            // locks or waiters whose memory is measured
)

// A scenario is a load, and the kind of lock of each contender. A contender without a kind takes
// no part.
type scenario struct {
	name  string
	title string
	load  string // see package contender
	kinds map[string]string
	lacks string // why, where it isn't plain

	floor     string            // in words: what the wire contender does
	pipelined string            // in words: what the pipelined wire contender does, if there is one
	loads     map[string]string // by contender, where it is another load

	workers int
	ops     int  // at a loopback's speed
	rounds  int  // at the most; 0 is as many as asked for
	byRate  bool // compared by the time of all operations together, not by the median of one
	tree    bool // all have one tree of as many znodes as workers
	fresh   bool // in a new process each time, whose memory is measured while it waits

	bars []bar
}

// scenarios returns the table of all scenarios.
func scenarios() []scenario {
	all := []scenario{
		{
			name: "uncontended", title: "uncontended acquire and release", load: "sequence", workers: 1, ops: 1000,
			kinds: map[string]string{wire: "along", docent: "mutex", gozk: "mutex", curator: "mutex", kazoo: "mutex"},
			floor: "create, children (sent behind it), delete",
			bars: []bar{
				atMost(ofP50, 1.12, wire),
				atMost(ofP50, 1.05, wire).remotely(),
				rateAtLeast(1, curator), rateAtLeast(1, gozk), rateAtLeast(1, kazoo),
				atMost(ofAllocs, 0.5, before), atMost(ofCPU, 0.67, before),
			},
		},
		{
			name: "reentry-goroutine", title: "re-entry by the goroutine, acquire and release", load: "reentry", workers: 1, ops: 200_000,
			kinds: map[string]string{docent: "mutex", curator: "mutex"},
			lacks: "the others' locks are not reentrant",
			bars:  []bar{atMost(ofP50, 1, curator), atMost(ofAllocs, 1, absolute), rateAtLeast(6_000_000, absolute)},
		},
		{
			name: "reentry-owner", title: "re-entry by an explicit owner, acquire and release", load: "reentry", workers: 1, ops: 200_000,
			kinds: map[string]string{docent: "mutex-owner", curator: "mutex"},
			bars:  []bar{atMost(ofP50, 1, curator), atMost(ofAllocs, 1, absolute), rateAtLeast(6_000_000, absolute)},
		},
		{
			name: "handoff", title: "hand-off between two sessions", load: "handoff", workers: 2, ops: 100,
			kinds: map[string]string{wire: "watched", docent: "mutex", gozk: "mutex", curator: "mutex", kazoo: "mutex"},
			floor: "delete until the other session's watch event",
			bars:  []bar{atMost(ofP50, 1.25, wire)},
		},
		{
			name: "leader-handoff", title: "hand-off of leadership between two sessions", load: "handoff", workers: 2, ops: 100,
			kinds: map[string]string{wire: "watched", docent: "leader", curator: "leader"},
			lacks: "go-zookeeper has no election, and kazoo's is its Lock",
			floor: "delete until the other session's watch event",
			bars:  []bar{atMost(ofP50, 1.25, wire)},
		},
		{
			name: "paths-64", title: "64 workers on 64 paths", load: "paths", workers: 64, ops: 3000, byRate: true,
			kinds: map[string]string{wire: "listed", docent: "mutex", gozk: "mutex", curator: "mutex", kazoo: "mutex"},
			floor: "create, children, delete by 64 workers",
			bars:  []bar{rateAtLeast(1.5, curator), rateAtLeast(1, wire)},
		},
		{
			name: "multi-10", title: "a multi-lock of 10", load: "sequence", workers: 1, ops: 100,
			kinds: map[string]string{wire: "multi", docent: "multi", gozk: "multi", curator: "multi", kazoo: "multi"},
			floor: "a multi of 10 creates, a multi of 10 deletes",
			bars:  []bar{rateAtLeast(4, curator), rateAtLeast(0.76, wire)},
		},
		{
			name: "semaphore", title: "a semaphore mutex, acquire and release", load: "sequence", workers: 1, ops: 200,
			kinds: map[string]string{wire: "semaphore", pipelined: "semaphore-once", docent: "semaphore", curator: "semaphore", kazoo: "semaphore"},
			floor: "create, create, two deletes at once", pipelined: "create, create, one transaction of two deletes",
			bars: []bar{rateAtLeast(1.7, curator), rateAtLeast(0.79, pipelined)},
		},
		{
			name: "trylock-refused", title: "an attempt at a lock that is held", load: "refused", workers: 1, ops: 300,
			kinds: map[string]string{wire: "children", docent: "mutex", curator: "mutex", kazoo: "mutex"},
			lacks: "go-zookeeper's Lock has no such attempt",
			floor: "children",
		},
	}
	return slices.Concat(all, contended(), shared(), caches(), memory())
}

// contended returns the scenarios in which workers of one process want one lock.
func contended() []scenario {
	mutex := map[string]string{wire: "listed", docent: "mutex", gozk: "mutex", curator: "mutex", kazoo: "mutex"}
	queue := map[string]string{wire: "listed", pipelined: "along", docent: "mutex", gozk: "mutex", curator: "mutex", kazoo: "mutex"}
	queueLoads := map[string]string{wire: "sequence", pipelined: "paths"}
	const behind = "create, children (sent behind it), delete by as many workers at once, each in its own directory"
	return []scenario{
		{
			name: "queue-100", title: "100 waiters drained", load: "queue", workers: 100, byRate: true,
			kinds: queue, loads: queueLoads, ops: 100,
			floor: "create, children, delete, 100 times one after another", pipelined: behind,
			bars: []bar{rateAtLeast(3, curator), rateAtLeast(1.3, gozk), rateAtLeast(0.9, pipelined)},
		},
		{
			name: "queue-1000", title: "1,000 waiters drained", load: "queue", workers: 1000, byRate: true, rounds: 3,
			kinds: queue, loads: queueLoads, ops: 1000,
			floor: "create, children, delete, 1,000 times one after another", pipelined: behind,
			bars: []bar{rateAtLeast(4, curator), rateAtLeast(1.5, gozk), rateAtLeast(0.9, pipelined)},
		},
		{
			name: "path-16", title: "16 workers of one process on one path", load: "shared", workers: 16, ops: 600, byRate: true,
			kinds: mutex, loads: map[string]string{wire: "sequence"},
			floor: "create, children, delete, one after another",
			bars:  []bar{rateAtLeast(1.3, curator)},
		},
		{
			name: "path-16-local", title: "16 workers of one process on one path, docent with local hand-off", load: "shared", workers: 16, ops: 2000, byRate: true,
			kinds: map[string]string{wire: "listed", docent: "mutex-local", gozk: "mutex", curator: "mutex", kazoo: "mutex"}, loads: map[string]string{wire: "sequence"},
			floor: "create, children, delete, one after another",
			bars:  []bar{rateAtLeast(50, curator)},
		},
		{
			name: "readers-16", title: "16 readers on one path", load: "shared", workers: 16, ops: 1500, byRate: true,
			kinds: map[string]string{wire: "listed", docent: "read", curator: "read", kazoo: "read"},
			floor: "create, children, delete by 16 workers",
			bars:  []bar{rateAtLeast(1.3, curator), rateAtLeast(1.2, wire)},
		},
		{
			name: "mix-90-10", title: "16 workers on one path, 90 % reads, 10 % writes", load: "mix", workers: 16, ops: 800, byRate: true,
			kinds: map[string]string{wire: "listed", docent: "rw", curator: "rw"}, loads: map[string]string{wire: "shared"},
			lacks: "kazoo's ReadLock also waits for writers behind it, so it deadlocks with its WriteLock under this load",
			floor: "create, children, delete by 16 workers",
			bars:  []bar{rateAtLeast(1.5, curator)},
		},
	}
}

// shared returns the scenarios of a number and of permits that clients share.
func shared() []scenario {
	kinds := map[string]string{docent: "counter", curator: "counter"}
	return []scenario{
		{
			name: "counter-16", title: "16 workers of one process add to one counter", load: "shared", workers: 16, ops: 3000, byRate: true,
			kinds: kinds, lacks: "go-zookeeper has no counter, and a thread of kazoo's retries alone",
			bars: []bar{rateAtLeast(8, curator)},
		},
		{
			name: "permits-2", title: "two sessions acquire 2 of 2 permits at the same time", load: "pair", workers: 2, ops: 20, byRate: true,
			kinds: map[string]string{docent: "permits", curator: "permits"},
			lacks: "kazoo's Semaphore acquires one permit at a time, and go-zookeeper has none",
			bars:  []bar{rateAtLeast(2, curator)},
		},
	}
}

// memory returns the scenarios that are about memory. Their times count for nothing.
func memory() []scenario {
	kinds := map[string]string{docent: "mutex", gozk: "mutex", curator: "mutex", kazoo: "mutex"}
	return []scenario{
		{
			name: "memory-waiters", title: "memory of 1,000 waiters, each", load: "queue", workers: memories, rounds: 3, byRate: true, fresh: true,
			kinds: kinds, bars: []bar{atMost(ofMemory, 12, absolute)},
		},
		{
			name: "memory-held", title: "memory of 1,000 held locks, each", load: "hold", workers: memories, rounds: 3, byRate: true, fresh: true,
			kinds: kinds,
		},
	}
}

// caches returns the scenarios of caches of 10,000 znodes, and of their memory.
func caches() []scenario {
	const size = 10_000
	lacks := "go-zookeeper has no cache, and kazoo's TreeCache keeps two watches per znode"
	return []scenario{
		{
			name: "cache-fill", title: "a cache of 10,000 znodes filled", load: "fill", workers: size, ops: 2, tree: true,
			kinds: map[string]string{wire: "cache", docent: "cache", curator: "cache"}, lacks: lacks,
			floor: "get of each znode, children of each directory, at most 1,000 at a time",
			bars:  []bar{rateAtLeast(2, curator)},
		},
		{
			name: "cache-change", title: "a change delivered by a cache of 10,000 znodes", load: "change", workers: size, ops: 200, tree: true,
			kinds: map[string]string{wire: "cache", docent: "cache", curator: "cache"}, lacks: lacks,
			floor: "the event of a bare watch, and a get",
			bars:  []bar{atMost(ofP50, 1.15, wire)},
		},
		{
			name: "memory-cache", title: "memory of a cache of 10,000 znodes, each", load: "cached", workers: size, rounds: 3,
			byRate: true, fresh: true, tree: true,
			kinds: map[string]string{docent: "cache", curator: "cache"}, lacks: lacks,
		},
	}
}

// isGated reports whether a run of the scenario stops half-way.
func (s scenario) isGated() bool {
	return s.load == "queue" || s.load == "hold" || s.load == "cached"
}
