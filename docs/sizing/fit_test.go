package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// paid returns measurements of servers that cost as much as given.
func paid(costs ...float64) []measurement {
	var all []measurement
	for _, curve := range []string{"waiters", "sessions", "readers", "multi", "cache"} {
		for _, size := range []int{10, 100, 300, 10_000} {
			m := measurement{curve: curve, contender: docent, setting: "ensemble, loopback, fsync", size: size}
			m.columns = map[string]float64{requestsColumn: 3, bytesInColumn: 1000 * float64(size%7)}
			w, _ := workOf(m)
			for i, amount := range w.parts() {
				m.columns[serversColumn] += amount * costs[i]
			}
			all = append(all, m)
		}
	}
	return all
}

func TestTheFitFindsTheCosts(t *testing.T) {
	t.Parallel()
	for _, costs := range [][]float64{{100, 30, 20, 50, 300, 10}, {100, 30, 0, 50, 300, 0}} {
		all := paid(costs...)
		f := must.Get(fitServers("ensemble", all, nil))(t)
		for i, cost := range f.costs {
			if math.Abs(cost-costs[i]) > 1e-6 {
				t.Errorf("%s costs %v, want %v", partNames()[i], cost, costs[i])
			}
		}
		if off := largest(f.compareServers(all)); math.Abs(off) > 1e-9 {
			t.Errorf("the fit is off by %v", off)
		}
	}
	f := must.Get(fitServers("ensemble", paid(100, 30, 20, 50, 300, 10), []float64{1, 1, 1, 50, 1, 10}))(t)
	if math.Abs(f.costs[0]-100) > 1e-6 || f.costs[3] != 50 {
		t.Errorf("with the costs of one server: %v, want those of reads as they are and of writes as fitted", f.costs)
	}
	if _, err := fitServers("standalone", paid(1, 1, 1, 1, 1, 1), nil); err == nil {
		t.Error("a fit to nothing")
	}
}

func TestNoCostIsNegative(t *testing.T) {
	t.Parallel()
	all := paid(100, 30, 20, 50, 300, 0)
	for _, m := range all {
		m.columns[serversColumn] -= 5 * m.columns[bytesInColumn] / 1000 // longer replies seem to cost less
	}
	for i, cost := range must.Get(fitServers("ensemble", all, nil))(t).costs {
		if cost < 0 {
			t.Errorf("%s costs %v", partNames()[i], cost)
		}
	}
}

func TestTheTimeGrowsByTheRoundTrips(t *testing.T) {
	t.Parallel()
	at := func(setting string, time float64) measurement {
		return measurement{"paths", docent, setting, 100, map[string]float64{timeColumn: time}}
	}
	all := []measurement{
		at("ensemble, 2ms of round trip added, 1ms of jitter", 5900),
		at("ensemble, 500µs of round trip added", 1700),
		at("ensemble, loopback, fsync", 9000), // another disk: no base
	}
	found := compareTimes(all)
	if len(found) != 1 || found[0].predicted != 1700+2*2000 {
		t.Errorf("predicted %+v, want 5,700 µs for the longer round trip alone", found)
	}
}

// The page shows what the program prints, and with it the largest errors.
func TestThePageShowsTheMeasurements(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("../sizing.md"))(t)
	page := filepath.Join(t.TempDir(), "page.md")
	must.OK(t, os.WriteFile(page, text, 0o600))
	must.OK(t, replaceMeasured(page, "measured"))
	if !bytes.Equal(must.Get(os.ReadFile(page))(t), text) {
		t.Error("docs/sizing.md does not show the measurements: go run ./docs/sizing -measured docs/sizing/measured -page docs/sizing.md")
	}
}

func TestTheLimitsOnPaper(t *testing.T) {
	t.Parallel()
	f := fit{costs: []float64{500, 0, 0, 100, 0, 0}} // 1,100 µs for a free lock
	for _, c := range []struct {
		load load
		want string
	}{
		{load{names: 18_000}, "**a listing of 1 MiB: divide by 2**"},
		{load{locks: 10_000_000}, "**4 GiB of each server: divide by 4**"},
		{load{sessions: 200_000}, "**20,000 sessions per server: divide by 4**"},
		{load{rate: 1_000}, "4 processors of the leader"},
		{load{rate: 10_000}, "**4 processors of the leader: divide by 2**"},
	} {
		var most share
		for _, s := range c.load.shares(f, reference) {
			if s.part > most.part {
				most = s
			}
		}
		if got := most.limit(); got != c.want {
			t.Errorf("%+v: the first limit is %s, want %s", c.load, got, c.want)
		}
	}
}

func TestMeasurementsAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"no curves": "", "line 2": "waiters,contender,setting,requests\n1,docent,here,many\n"} {
		dir := t.TempDir()
		if text != "" {
			must.OK(t, os.WriteFile(filepath.Join(dir, "waiters.csv"), []byte(text), 0o600))
		}
		if err := printMeasured(new(bytes.Buffer), dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error with %q", err, name)
		}
	}
}

// The largest errors of the measurements that are kept. Another machine gives others.
func TestTheModelIsOffByLittle(t *testing.T) {
	t.Parallel()
	all := must.Get(readMeasurements("measured"))(t)
	atMost := func(what string, most float64, found []comparison) {
		if len(found) == 0 {
			t.Errorf("%s: nothing to compare", what)
		} else if off := math.Abs(largest(found)); off > most {
			t.Errorf("%s: off by %.3f, want at most %v", what, off, most)
		}
	}
	isFar := func(c comparison) bool { return !isNear(c.of.setting) }
	atMost("requests", 0.07, slices.DeleteFunc(compareRequests(all), isFar))
	atMost("requests of slow runs, which create directories again", 0.16, compareRequests(all))
	atMost("replies", 0.11, compareBytes(all))
	fits, lacking := fitAll(all)
	if len(fits) != 2 || len(lacking) > 0 {
		t.Errorf("%d fits, and lacking %v; want one server's and an ensemble's", len(fits), lacking)
	}
	for _, f := range fits {
		found := slices.DeleteFunc(f.compareServers(all), isFar)
		atMost("the servers' CPU of "+f.mode, 0.37, found)
	}
}
