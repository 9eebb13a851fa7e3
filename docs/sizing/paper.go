package main

import (
	"fmt"
	"io"
	"math"
)

// Amounts that were measured once, with a server's heap and its processor time.
const (
	bytesPerLock    = 1_440 // of each server's heap: the directory, the znode, its watch
	bytesPerSession = 3_990 // of the heap of the server that has the session
	// The leader's share of the processor time of three servers that have a third of the clients each.
	// Without clients of its own it did 30 %, the follower with all clients 54 %, the other 16 %.
	leaderShare = 0.43
)

// Bounds of an ensemble on paper.
const (
	paperProcessors = 4         // of the leader
	paperHeap       = 4 << 30   // bytes of each server
	paperDay        = 24 * 3600 // seconds
	zxidsPerEpoch   = 1 << 32
)

// A load is what an ensemble carries at one moment.
type load struct {
	name                         string
	locks, names, sessions, rate float64 // rate is of free locks per second
}

// times returns the load of so many times as much.
func (l load) times(n float64) load {
	return load{l.name, l.locks * n, l.names * n, l.sessions * n, l.rate * n}
}

// size returns the number that the load is about.
func (l load) size() float64 { return max(l.locks, l.names, l.sessions, l.rate) }

// paperLoads returns the largest loads that were run.
func paperLoads() []load {
	return []load{
		{name: "waiters on one path", names: 10_000},
		{name: "locks held", locks: 100_000},
		{name: "clients with leases", sessions: 2_000},
		{name: "free locks per second", rate: 1_000},
	}
}

// A share is a part of what an ensemble has of something.
type share struct {
	of   string
	part float64
}

// shares returns how much of each bound the load uses.
func (l load) shares(f fit, on ensemble) []share {
	beats := l.sessions * on.beatsPerT() / on.timeout.Seconds()
	writes := beats + l.rate*writesPerLock
	processor := f.of(work{writes: writes, reads: beats + l.rate*readsPerLock}) / 1e6
	heap := (l.locks+l.names)*bytesPerLock + l.sessions*bytesPerSession/float64(on.servers)
	return []share{
		{"a listing of 1 MiB", l.names / namesPerAnswer},
		{fmt.Sprintf("%d processors of the leader", paperProcessors), processor * leaderShare / paperProcessors},
		{"4 GiB of each server", heap / paperHeap},
		{"the zxids of a day", writes * paperDay / zxidsPerEpoch},
		{fmt.Sprintf("%s sessions per server", grouped(float64(on.sessions))), l.sessions / float64(on.servers*on.sessions)},
	}
}

// printPaper prints how much of each bound the largest loads use, and ten and a hundred times as much,
// as Markdown.
func printPaper(w io.Writer, f fit, on ensemble) {
	head, rule := "| load | size |", "|---|--:|"
	for _, s := range (load{}).shares(f, on) {
		head, rule = head+" "+s.of+" |", rule+"--:|"
	}
	fmt.Fprintf(w, "%s first limit |\n%s---|\n", head, rule)
	for _, run := range paperLoads() {
		for _, factor := range []float64{1, 10, 100} {
			l := run.times(factor)
			fmt.Fprintf(w, "| %s | %s |", l.name, grouped(l.size()))
			first := share{of: "none", part: 0}
			for _, s := range l.shares(f, on) {
				if s.part > first.part {
					first = s
				}
				fmt.Fprintf(w, " %s |", partCell(s.part))
			}
			fmt.Fprintf(w, " %s |\n", first.limit())
		}
	}
}

// limit names the bound, and among how many ensembles or paths the load has to be divided.
func (s share) limit() string {
	if s.part <= 1 {
		return s.of
	}
	return fmt.Sprintf("**%s: divide by %s**", s.of, grouped(math.Ceil(s.part)))
}

func partCell(part float64) string {
	switch {
	case part == 0:
		return "—"
	case part < 0.001:
		return "< 0.1 %"
	case part < 0.1:
		return fmt.Sprintf("%.1f %%", 100*part)
	default:
		return grouped(math.Round(100*part)) + " %"
	}
}
