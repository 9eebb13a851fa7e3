package main

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Requests of a Mutex. A test compares each with the requests of a client.
const (
	writesPerLock  = 2.0             // create, delete
	readsPerLock   = 1.0             // the listing that travels with the create
	writesPerName  = 2.0             // of a lock whose directory is new: the create that finds none, and the container
	readsPerName   = 1.0             // the listing that finds none
	readsPerWait   = 4.0             // the predecessor and the own znode watched, the queue looked at again
	readsPerHold   = 1.0             // the own znode is watched if it is held for longer than holdNoticed
	beatsPerT      = 4.0             // transactions of a client that has leases, and writes nothing; 8 if T is below slowBeats
	probesPerT     = 4.0             // reads of that client, one ahead of each such transaction
	bytesPerBeat   = 73              // in the transaction log of each server
	pingsPerT      = 3.0             // of every client, to its own server
	bytesPerName   = 59              // in a listing
	slowBeats      = 9 * time.Second // the shortest T with four heartbeats, by the default lease margin
	holdNoticed    = 50 * time.Millisecond
	headroom       = 0.5 // of what was measured, that is planned for: elections, restarts, one server less
	namesPerAnswer = 1 << 20 / bytesPerName
)

// An ensemble is what one can do.
type ensemble struct {
	timeout  time.Duration // of sessions
	servers  int
	writes   float64 // per second, by all together: the leader orders them
	reads    float64 // per second, by each server
	sessions int     // that one server is to have at the most
}

// reference is the ensemble that BenchmarkCost measured. Three servers and all their clients shared
// two cores with other work. Each figure is the lowest of three runs; a server's reads are a third
// of the total. Writes were flushed. Servers with their own cores and log disks do several times as
// much. 20,000 sessions per server are a habit, not a measurement.
var reference = ensemble{timeout: 30 * time.Second, servers: 3, writes: 4_800, reads: 3_900, sessions: 20_000} //nolint:gochecknoglobals // a constant, if Go had constant structs

// A workload is what clients do. Each has a session.
type workload struct {
	name    string
	clients int
	rate    float64       // locks per second and client
	hold    time.Duration // how long each is held
	ahead   float64       // contenders that it finds ahead, on average
	idle    bool          // holds all the time, and locks nothing
}

// beatsPerT returns how many heartbeats a client with leases sends in a session timeout.
func (e ensemble) beatsPerT() float64 {
	if e.timeout < slowBeats {
		return 2 * beatsPerT
	}
	return beatsPerT
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
	check(on.writes > 0 && on.reads > 0, "-writes %g, -reads %g: must be positive", on.writes, on.reads)
	check(on.sessions > 0, "-sessions %d: must be positive", on.sessions)
	return errors.Join(faults...)
}

// A demand is what a workload asks of an ensemble.
type demand struct {
	writes, beats, reads float64 // per second
	log                  float64 // bytes per second that heartbeats add to each server's transaction log
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
	// A listing costs the request and its names: a thousand names cost about one more read.
	perLock += (1 + waits) * l.ahead / 1000

	busy := math.Min(1, l.rate*l.hold.Seconds()*(1+l.ahead)) // share of the time in which a client has a znode
	if l.idle {
		busy = 1
	}
	perT := 1 / on.timeout.Seconds()
	beats := float64(l.clients) * math.Max(0, busy*on.beatsPerT()*perT-l.rate*writesPerLock) // its own writes do as well
	local := float64(l.clients)*pingsPerT*perT + beats                                       // a probe goes out ahead of each heartbeat

	d := demand{writes: locks * writesPerLock, beats: beats, reads: locks * perLock, log: beats * bytesPerBeat}
	d.leader = (d.writes + d.beats) / on.writes
	d.server = (d.reads+local)/(float64(on.servers)*on.reads) + d.leader // every server does every write
	d.sessions = float64(l.clients) / float64(on.servers)
	need := math.Max(d.server/headroom, d.sessions/float64(on.sessions))
	d.ensembles = max(1, int(math.Ceil(need-1e-9)))
	return d
}
