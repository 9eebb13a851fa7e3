package sim_test

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// few is how many schedules a plain go test runs; make sim has many.
const few = 40

// many is from how many schedules on everything must have been met.
const many = 2000

// TestSimulation runs schedules in processes of their own, from the seed SIM_FIRST on. It runs at
// least SIM_SCHEDULES of them and SIM_HOURS of virtual time. With SIM_SEED it runs the schedule of
// that seed, SIM_REPEAT times.
func TestSimulation(t *testing.T) {
	if os.Getenv(partEnv) != "" {
		t.Skip("a part of another run")
	}
	if seed := setting(t, "SIM_SEED", 0); seed != 0 {
		replay(t, seed, setting(t, "SIM_REPEAT", 20))
		return
	}
	schedules := setting(t, "SIM_SCHEDULES", few)
	hours := setting(t, "SIM_HOURS", 0)
	total := runParts(t, shares(setting(t, "SIM_FIRST", 1), schedules, time.Duration(hours)*time.Hour))
	t.Logf("%d schedules, %v of virtual time\n%s", total[schedulesKey],
		(time.Duration(total[virtualKey]) * time.Millisecond).Round(time.Minute), render(total))
	if schedules >= many && !t.Failed() {
		mustHaveMet(t, total)
	}
}

// mustHaveMet fails the test if the schedules have left out a fault or a lock.
func mustHaveMet(t *testing.T, total map[string]int) {
	t.Helper()
	needed := []string{
		"losses", "successions", "guarded writes", "guarded writes refused", "revocations heeded", "sessions expired", "passed on",
		"closes with a connection", "leases at a close", "single permits made out of turn", "single permits made without a turn",
		"grants mutex", "grants read", "grants write", "grants semaphore", "grants exclusive", "grants multi",
	}
	for _, kind := range []string{"mutex", "rw", "semaphore", "exclusive"} {
		needed = append(needed, comeAgain(kind)...)
	}
	for _, x := range allRecipes() {
		needed = append(needed, x.met...)
	}
	for _, kind := range slices.Concat(faultKinds(), readKinds(), foreignKinds()) {
		needed = append(needed, "fault "+kind.name)
	}
	for _, v := range versions() {
		needed = append(needed, versionKey(v))
	}
	needed = append(needed, viewsMet()...)
	for _, what := range needed {
		if total[what] == 0 {
			t.Errorf("never met: %s", what)
		}
	}
}

// versionKey counts the schedules with servers of the version.
func versionKey(version string) string { return "servers of version " + version }

// setting returns a number from the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: must be a number", name, text)
	}
	return n
}

// simulate runs the schedule of a seed.
func simulate(t *testing.T, env *environment) *environment {
	t.Helper()
	synctest.Test(t, func(*testing.T) { env.run() })
	return env
}
