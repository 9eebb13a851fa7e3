package main

import (
	"fmt"
	"math"
)

// A bar is what docent has to reach, mostly compared with another contender. Bars are judged on
// one server alone.
type bar struct {
	against string  // or absolute
	measure string  // what of
	limit   float64 // at the most, but for rates: at the least
	where   func(setting) bool
}

// absolute bars are against no contender.
const absolute = ""

// The measures of bars.
const (
	ofP50    = "p50"
	ofRate   = "rate"
	ofAllocs = "allocations"
	ofMemory = "KiB"
	ofCPU    = "processor time"
)

// atMost is a bar on the loopback, as is rateAtLeast.
func atMost(measure string, limit float64, against string) bar {
	return bar{against: against, measure: measure, limit: limit, where: loopback}
}

// rateAtLeast is for operations per second. An absolute one depends on the machine.
func rateAtLeast(limit float64, against string) bar {
	return bar{against: against, measure: ofRate, limit: limit, where: loopback}
}

// remotely returns the bar for where a round trip is added.
func (b bar) remotely() bar {
	b.where = remote
	return b
}

func loopback(s setting) bool { return s.mode != ensemble && s.rtt == 0 }
func remote(s setting) bool   { return s.mode != ensemble && s.rtt > 0 }

// A verdict is a bar and what was measured. Without a measurement there is none.
type verdict struct {
	Bar      string  `json:"bar"`
	Measured float64 `json:"measured"`
	Judged   bool    `json:"judged"` // false where a contender is missing or has failed
	Met      bool    `json:"met"`
}

// word returns the verdict in a word.
func (v verdict) word() string {
	switch {
	case !v.Judged:
		return "not judged"
	case v.Met:
		return "met"
	default:
		return "**missed**"
	}
}

// String returns the bar in words.
func (b bar) String() string {
	switch {
	case b.measure == ofP50:
		return fmt.Sprintf("p50 ≤ %.2f × %s", b.limit, b.against)
	case b.measure == ofRate && b.against == absolute:
		return fmt.Sprintf("≥ %.0f per second", b.limit)
	case b.measure == ofRate:
		return fmt.Sprintf("≥ %.2f × %s's throughput", b.limit, b.against)
	case b.against != absolute:
		return fmt.Sprintf("%s ≤ %.2f × %s", b.measure, b.limit, b.against)
	default:
		return fmt.Sprintf("≤ %g %s", b.limit, b.measure)
	}
}

// judge compares docent's figures with those of all contenders.
func (b bar) judge(all map[string]figures) verdict {
	v := verdict{Bar: b.String()}
	own, ok := all[docent]
	if !ok || own.Error != "" {
		return v
	}
	measured, known := b.of(own)
	if b.against != absolute {
		other, ok := all[b.against]
		if !ok || other.Error != "" {
			return v
		}
		than, knownToo := b.of(other)
		measured, known = measured/than, known && knownToo
	} else if b.measure == ofAllocs {
		measured = math.Round(measured*100) / 100 // not counting the process's own few
	}
	v.Judged = known && !math.IsNaN(measured) && !math.IsInf(measured, 0)
	if !v.Judged {
		return v // JSON has no other numbers
	}
	v.Measured = measured
	if b.measure == ofRate {
		v.Met = measured >= b.limit
	} else {
		v.Met = measured <= b.limit
	}
	return v
}

// of returns the figure that the bar is about, and whether it is known.
func (b bar) of(f figures) (value float64, known bool) {
	switch b.measure {
	case ofP50:
		return f.P50, true
	case ofRate:
		return f.Rate, true
	case ofAllocs:
		return f.Allocs, true
	case ofMemory:
		return f.KiBEach, f.PeakMiB != 0
	default:
		return f.CPU, f.CPU != 0
	}
}
