package main

import (
	"math"
	"slices"
)

// quantile returns the q-quantile of values, between the nearest two, and NaN of
// none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	below := int(at)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (sorted[above]-sorted[below])*(at-float64(below))
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// figuresOf sums up an entrant's turns.
func figuresOf(e *entrant) figures {
	f := figures{Contender: e.name}
	if e.err != nil {
		f.Error = e.err.Error()
		return f
	}
	var all, p50s, rates, allocs, requests, grown []float64
	var cpu, total float64
	for _, t := range e.turns {
		var samples []float64
		for _, s := range t.Samples {
			samples = append(samples, float64(s))
		}
		ops := float64(t.Ops)
		all = append(all, samples...)
		p50s = append(p50s, median(samples))
		rates = append(rates, ops/(t.Elapsed.Seconds()))
		allocs = append(allocs, float64(t.Mallocs)/ops)
		requests = append(requests, float64(t.requests)/ops)
		grown = append(grown, float64(t.grown)/1024/ops)
		cpu += float64(t.cpu)
		total += ops
		f.PeakMiB = max(f.PeakMiB, float64(t.peak)/(1<<20))
	}
	f.Samples, f.RoundsP50, f.RoundsRate = len(all), p50s, rates
	f.RoundsRequests, f.RoundsAllocs = requests, allocs
	f.CPU = cpu / total // of all rounds, because the system counts it in steps of 10 ms
	f.P50, f.P99, f.Rate = median(p50s), quantile(all, 0.99), median(rates)
	f.Allocs, f.Requests, f.KiBEach = median(allocs), median(requests), median(grown)
	return f
}

// summarize compares the entrants and judges the bars.
func summarize(sc scenario, s setting, in []*entrant) scenarioResult {
	result := scenarioResult{Name: sc.name, Title: sc.title, Floor: sc.floor, Pipelined: sc.pipelined, Lacks: sc.lacks, ByRate: sc.byRate, Weighed: sc.fresh}
	all := make(map[string]figures)
	for _, e := range in {
		all[e.name] = figuresOf(e)
	}
	for _, e := range in {
		f := all[e.name]
		if f.Error == "" {
			f.OfFloor = ratio(f.cost(sc.byRate), all[wire], sc.byRate)
			f.OfDocent = ratio(f.cost(sc.byRate), all[docent], sc.byRate)
		}
		result.Contenders = append(result.Contenders, f)
	}
	for _, b := range sc.bars {
		if b.where(s) {
			result.Bars = append(result.Bars, b.judge(all))
		}
	}
	return result
}

// ratio returns how often the other's cost goes into cost, 0 where there is no other.
func ratio(cost float64, other figures, byRate bool) float64 {
	if other.Contender == "" || other.Error != "" || other.cost(byRate) == 0 {
		return 0
	}
	return cost / other.cost(byRate)
}
