package main

import (
	"fmt"
	"math"
)

// A bar is what docent has to reach, mostly compared with another contender. Bars are judged on
// one server alone.
type bar struct {
	against string  // "" for an absolute one
	measure string  // what of
	limit   float64 // at the most, but for rates: at the least
	where   func(setting) bool
}

// The measures of bars.
const (
	ofP50    = "p50"
	ofRate   = "rate"
	ofAllocs = "allocations"
	ofMemory = "KiB"
)

func p50AtMost(against string, limit float64) bar   { return bar{against, ofP50, limit, loopback} }
func rateAtLeast(against string, limit float64) bar { return bar{against, ofRate, limit, loopback} }
func allocsAtMost(limit float64) bar                { return bar{"", ofAllocs, limit, loopback} }
func memoryAtMost(limit float64) bar                { return bar{"", ofMemory, limit, loopback} }

// on returns the bar for another setting than the loopback.
func (b bar) on(where func(setting) bool) bar {
	b.where = where
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

// String returns the bar in words.
func (b bar) String() string {
	switch b.measure {
	case ofP50:
		return fmt.Sprintf("p50 ≤ %.2f × %s", b.limit, b.against)
	case ofRate:
		return fmt.Sprintf("≥ %.2f × %s's throughput", b.limit, b.against)
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
	switch b.measure {
	case ofAllocs:
		v.Measured = math.Round(own.Allocs*100) / 100 // not counting the process's own few
	case ofMemory:
		if v.Measured = own.KiBEach; own.PeakMiB == 0 {
			return v
		}
	default:
		other, ok := all[b.against]
		if !ok || other.Error != "" {
			return v
		}
		if b.measure == ofP50 {
			v.Measured = own.P50 / other.P50
		} else {
			v.Measured = own.Rate / other.Rate
		}
	}
	v.Judged = !math.IsNaN(v.Measured) && !math.IsInf(v.Measured, 0)
	if b.measure == ofRate {
		v.Met = v.Judged && v.Measured >= b.limit
	} else {
		v.Met = v.Judged && v.Measured <= b.limit
	}
	if !v.Judged {
		v.Measured = 0 // JSON has no other numbers
	}
	return v
}
