package main

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// What docent asks for a Mutex, in requests. A test holds each against what a client sends.
const (
	writesPerLock  = 2.0 // create, delete
	readsPerLock   = 1.0 // the listing that travels with the create
	readsPerWait   = 4.0 // the predecessor and the own znode watched, the queue looked at again
	readsPerHold   = 1.0 // the own znode is watched if it is held for longer than holdNoticed
	syncsPerT      = 8.0 // while a client has leases, and writes nothing
	pingsPerT      = 3.0 // of every client, to its own server
	bytesPerName   = 59  // in a listing
	holdNoticed    = 50 * time.Millisecond
	headroom       = 0.5 // of what was measured, that is planned for: elections, restarts, one server less
	namesPerAnswer = 1 << 20 / bytesPerName
)

// An ensemble is what one can do.
type ensemble struct {
	timeout  time.Duration // of sessions
	servers  int
	writes   float64 // per second, by all together: the leader orders them
	syncs    float64 // per second, by all together
	reads    float64 // per second, by each server
	sessions int     // that one server is to have at the most
}

// reference is one whose speed BenchmarkCost measured: three servers and all their clients on two cores
// that had other work besides, each figure the least of three runs, a server's reads a third of what
// all three gave. Writes were flushed. Servers with cores and log disks of their own do several
// times as much. 20 000 sessions per server are a habit, not a measurement.
var reference = ensemble{timeout: 30 * time.Second, servers: 3, writes: 4_800, syncs: 14_700, reads: 3_900, sessions: 20_000} //nolint:gochecknoglobals // a constant, if Go had constant structs

// A workload is what clients do. Each has a session.
type workload struct {
	name    string
	clients int
	rate    float64       // locks per second and client
	hold    time.Duration // how long each is held
	ahead   float64       // contenders that it finds ahead, on average
	idle    bool          // holds all the time, and locks nothing
}

func (l workload) validate(on ensemble) error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(l.clients >= 0, "-clients %d: must not be negative", l.clients)
	check(l.rate >= 0, "-rate %g: must not be negative", l.rate)
	check(l.hold >= 0, "-hold %v: must not be negative", l.hold)
	check(l.ahead >= 0, "-ahead %g: must not be negative", l.ahead)
	check(l.rate*l.hold.Seconds()*(1+l.ahead) <= 1, "-rate %g, -hold %v, -ahead %g: a client can't lock so often", l.rate, l.hold, l.ahead)
	check(on.timeout > 0, "-timeout %v: must be positive", on.timeout)
	check(on.servers > 0, "-servers %d: must be positive", on.servers)
	check(on.writes > 0 && on.syncs > 0 && on.reads > 0, "-writes %g, -syncs %g, -reads %g: must be positive", on.writes, on.syncs, on.reads)
	check(on.sessions > 0, "-sessions %d: must be positive", on.sessions)
	return errors.Join(faults...)
}

// A demand is what a workload asks of an ensemble.
type demand struct {
	writes, syncs, reads float64 // per second
	leader               float64 // share of what the leader can order
	server               float64 // share of what each server can answer
	sessions             float64 // per server
	ensembles            int     // that it should be divided among
}

// demand returns what the workload asks of one ensemble, and among how many of them it
// should be divided.
func (l workload) demand(on ensemble) demand {
	locks := float64(l.clients) * l.rate
	waits := 0.0
	if l.ahead > 0 {
		waits = 1
	}
	perLock := readsPerLock + waits*readsPerWait
	if l.hold > holdNoticed {
		perLock += readsPerHold
	}
	// A listing costs what its names cost, beside the request: a thousand names about one read more.
	perLock += (1 + waits) * l.ahead / 1000

	busy := math.Min(1, l.rate*l.hold.Seconds()*(1+l.ahead)) // share of the time in which a client has a znode
	if l.idle {
		busy = 1
	}
	perT := 1 / on.timeout.Seconds()
	syncs := float64(l.clients) * math.Max(0, busy*syncsPerT*perT-l.rate*writesPerLock) // its own writes do as well
	pings := float64(l.clients) * pingsPerT * perT

	d := demand{writes: locks * writesPerLock, syncs: syncs, reads: locks * perLock}
	d.leader = d.writes/on.writes + d.syncs/on.syncs
	d.server = (d.reads+pings)/(float64(on.servers)*on.reads) + d.leader // every server does every write
	d.sessions = float64(l.clients) / float64(on.servers)
	need := math.Max(d.server/headroom, d.sessions/float64(on.sessions))
	d.ensembles = max(1, int(math.Ceil(need-1e-9)))
	return d
}
