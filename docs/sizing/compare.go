package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// isNear reports whether no round trip was added.
func isNear(setting string) bool { return strings.Contains(setting, "loopback") }

// roundTrips is how many round trips an operation of a curve waits for, one after another.
func roundTrips() map[string]float64 {
	return map[string]float64{"waiters": 1, "sessions": 1, "paths": 2, "multi": 2}
}

// A comparison is a prediction and what was measured.
type comparison struct {
	of                  measurement
	predicted, measured float64
}

// off returns by which part of the measured value the prediction is off.
func (c comparison) off() float64 { return c.predicted/c.measured - 1 }

// compareRequests compares docent's requests. The prediction knows the curve and the size alone.
func compareRequests(all []measurement) []comparison {
	var found []comparison
	for _, m := range all {
		if w, known := workOf(measurement{curve: m.curve, contender: m.contender, size: m.size}); known && m.contender == docent &&
			m.size >= fitFrom && !isFirst(m) && !isLong(m) {
			found = append(found, comparison{m, w.requests(), m.columns[requestsColumn]})
		}
	}
	return found
}

// bytesPerWait is what a client receives that connects, waits with no other contender, and closes.
const bytesPerWait = 1_500

// compareBytes compares what the clients of sessions receive: each reads N names, in one listing as
// it arrives and in one as it becomes the second in line.
func compareBytes(all []measurement) []comparison {
	var found []comparison
	for _, m := range all {
		if m.curve == "sessions" && m.contender == docent && m.size >= fitFrom {
			found = append(found, comparison{m, bytesPerWait + bytesPerName*float64(m.size), m.columns[bytesInColumn]})
		}
	}
	return found
}

// compareServers compares the servers' processor time in all settings of the fit's mode.
func (f fit) compareServers(all []measurement) []comparison {
	var found []comparison
	for _, m := range all {
		if w, known := workOf(m); known && fitted(m) && modeOf(m.setting) == f.mode {
			found = append(found, comparison{m, f.of(w), m.columns[serversColumn]})
		}
	}
	return found
}

// compareTimes compares the time of docent's operations. The prediction is the time with the shortest
// round trip that was measured, and the round trips that are longer.
func compareTimes(all []measurement) []comparison {
	key := func(m measurement) string {
		return fmt.Sprint(m.curve, m.size, modeOf(m.setting), isFlushed(m.setting))
	}
	bases := make(map[string]measurement)
	for _, m := range all {
		if base, found := bases[key(m)]; m.contender == docent && (!found || addedTo(m.setting) < addedTo(base.setting)) {
			bases[key(m)] = m
		}
	}
	var found []comparison
	for _, m := range all {
		trips, known := roundTrips()[m.curve]
		base := bases[key(m)]
		if known && m.contender == docent && m.setting != base.setting && m.size >= fitFrom && !isFirst(m) {
			longer := addedTo(m.setting) - addedTo(base.setting)
			found = append(found, comparison{m, base.columns[timeColumn] + trips*longer, m.columns[timeColumn]})
		}
	}
	return found
}

// addedTo returns the round trip that a setting adds on average, in microseconds. Jitter adds half of
// the most that it may add.
func addedTo(setting string) float64 {
	added := 0.0
	for part := range strings.SplitSeq(setting, ", ") {
		amount, what, _ := strings.Cut(part, " of ")
		d, err := time.ParseDuration(amount)
		switch {
		case err != nil:
		case what == "jitter":
			added += float64(d.Microseconds()) / 2
		default:
			added += float64(d.Microseconds())
		}
	}
	return added
}

// printComparisons prints the worst comparison of each curve and setting, as Markdown, and the largest
// error of all.
func printComparisons(w io.Writer, what, unit string, all []comparison) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "| %s | contender | setting | size | predicted, %s | measured, %s | off by |\n", what, unit, unit)
	fmt.Fprintln(w, "|---|---|---|--:|--:|--:|--:|")
	worst := make(map[string]comparison)
	var order []string
	for _, c := range all {
		key := c.of.curve + c.of.contender + c.of.setting
		if _, seen := worst[key]; !seen {
			order = append(order, key)
		}
		if seen := worst[key]; seen.measured == 0 || math.Abs(c.off()) > math.Abs(seen.off()) {
			worst[key] = c
		}
	}
	for _, key := range order {
		c := worst[key]
		fmt.Fprintf(w, "| `%s` | %s | %s | %s | %s | %s | %s |\n", c.of.curve, c.of.contender, c.of.setting,
			grouped(float64(c.of.size)), figure(c.predicted), figure(c.measured), percent(c.off()))
	}
	fmt.Fprintf(w, "\nLargest error of %d: %s.\n", len(all), percent(largest(all)))
}

// largest returns the error that is the largest, with its sign.
func largest(all []comparison) float64 {
	c := slices.MaxFunc(all, func(a, b comparison) int {
		switch x, y := math.Abs(a.off()), math.Abs(b.off()); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return c.off()
}

// figure writes three digits, and all digits of a whole number.
func figure(v float64) string {
	if v >= 100 {
		return grouped(v)
	}
	return fmt.Sprintf("%.3g", v)
}

func percent(part float64) string {
	return strings.Replace(fmt.Sprintf("%+.1f %%", 100*part), "-", "−", 1)
}
