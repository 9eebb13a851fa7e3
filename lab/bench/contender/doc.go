// Package contender is the side of a benchmark that holds the locks: a library behind a small
// interface, the loads that are put on it, and the line protocol by which the benchmark asks for them.
//
// ../java/BenchDriver.java and ../python/bench_driver.py speak the same protocol. Their loads are to
// be changed with those here.
//
// # The protocol
//
// Commands are lines of words, answers lines of JSON, one each (see Answer):
//
//	connect SERVER,SERVER TIMEOUT              two sessions, the first at the first server; TIMEOUT in milliseconds
//	run LOAD KIND PATH WORKERS OPS SETTLE      a run; SETTLE in milliseconds
//	gc                                         collects garbage, answers the bytes that live
//
// In the loads "queue", "hold" and "cached" a run stops half-way and says {"waiting":true}.
// It takes "gc" then, and goes on at "go". The end of the input ends the process.
//
// # The loads
//
// A lock object belongs to one worker, a goroutine or thread, and the kind says which
// recipe it is. A lock of the kind "counter" is an addition, whose release does nothing. One of the
// kind "permits" is all of 2 permits, and one of the kind "multi" is of 10 members.
//
//	sequence   one worker acquires and releases one lock, OPS times; a sample is both together
//	reentry    the same while it holds the lock already; a sample is the mean of a batch
//	paths      WORKERS, each with a path of its own, make OPS together
//	shared     WORKERS on one path make OPS together; a sample is both together
//	mix        the same, with a write lock in each tenth operation and read locks else
//	handoff    two sessions in turn: a sample is the time from the call of one's release to the
//	           other's grant, which has waited for SETTLE before
//	queue      WORKERS of one session wait for a lock of that session, all at once; after "go" it is
//	           released, and each releases as soon as it holds. A sample lies between two grants
//	hold       one worker acquires WORKERS locks on as many paths, releases them after "go"
//	refused    the first session holds, the second one tries OPS times, and is refused
//	pair       OPS times both sessions acquire and release at the same time, each for a second at the
//	           most. A sample is the time until both have released or withdrawn
//
// PATH of the following loads has WORKERS znodes below it.
//
//	fill       the first session fills OPS caches of PATH, one after another
//	change     OPS times the second session writes a znode that the first session has in a cache. A
//	           sample is the time from the call of the write until the cache has the data
//	cached     the first session fills a cache, and closes it after "go"
package contender
