package hostile_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// few is how many seeds a plain go test runs.
const few = 300

// longestRun is how long one run may take, in real time. A run takes milliseconds. Only code that
// spins takes longer, and virtual time does not end that.
const longestRun = 3 * time.Minute

// TestHostileServer runs seeds: HOSTILE_SEED only that one, else those from HOSTILE_FIRST on for
// HOSTILE_MINUTES, or a few.
func TestHostileServer(t *testing.T) {
	if seed := setting(t, "HOSTILE_SEED", 0); seed != 0 {
		one(t, seed)
		return
	}
	minutes, first := setting(t, "HOSTILE_MINUTES", 0), setting(t, "HOSTILE_FIRST", 1)
	end := time.Now().Add(time.Duration(minutes) * time.Minute)
	runs, frames, changed := 0, 0, 0
	tell := func() { t.Logf("%d runs, %d frames, %d of them changed", runs, frames, changed) }
	for seed := first; seed < first+few && minutes == 0 || time.Now().Before(end); seed++ {
		if srv := one(t, seed); srv != nil { // else it has failed
			runs, frames, changed = runs+1, frames+srv.frames, changed+srv.changed
		}
		if minutes > 0 && runs%1000 == 0 {
			tell()
		}
	}
	tell()
	if changed == 0 {
		t.Error("nothing was changed")
	}
}

// In FuzzHostileServer the fuzzing of go test writes the script.
func FuzzHostileServer(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(fromSeed(seed))
	}
	f.Fuzz(func(t *testing.T, given []byte) { within(t, 0, given) })
}

// one runs a seed.
func one(t *testing.T, seed uint64) (srv *server) {
	t.Helper()
	t.Run("seed "+strconv.FormatUint(seed, 10), func(t *testing.T) { srv = within(t, seed, fromSeed(seed)) })
	return srv
}

// within plays the script in a bubble, and ends the process if that spins.
func within(t *testing.T, seed uint64, given []byte) (srv *server) {
	t.Helper()
	limit := time.AfterFunc(longestRun, func() {
		stacks := make([]byte, 16<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		os.Stderr.Write(stacks)
		panic("the run of seed " + strconv.FormatUint(seed, 10) + " spins")
	})
	defer limit.Stop()
	synctest.Test(t, func(t *testing.T) { srv = play(t, given) })
	return srv
}

// setting returns a number from the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: must be a number", name, text)
	}
	return n
}
