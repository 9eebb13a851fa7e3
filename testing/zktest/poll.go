package zktest

import (
	"testing"
	"time"
)

// pollEvery is how often a condition is tried: often enough not to be what a
// test waits for, seldom enough to leave the machine to what it waits for.
const pollEvery = 5 * time.Millisecond

// Eventually tries cond every few milliseconds until it is true, and fails the
// test with what if it is still false after within. A generous limit costs
// nothing when all is well. Conditions are tried on the caller's goroutine, one
// at a time, and at least once.
func Eventually(t testing.TB, within time.Duration, what string, cond func() bool) {
	t.Helper()
	start := time.Now()
	if !poll(within, cond) {
		t.Fatalf("not within %v: %s", time.Since(start).Round(time.Millisecond), what)
	}
}

// Never tries cond every few milliseconds for as long as during says, and fails
// the test with what if it is ever true. It shows no more than that it was not
// seen to happen: rather wait for what comes instead, where something does.
func Never(t testing.TB, during time.Duration, what string, cond func() bool) {
	t.Helper()
	start := time.Now()
	if poll(during, cond) {
		t.Fatalf("after %v: %s", time.Since(start).Round(time.Millisecond), what)
	}
}

// poll reports whether cond became true within the limit. The last try is after the limit, so that
// a pause of the whole process fails no test.
func poll(limit time.Duration, cond func() bool) bool {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		over := time.Now().After(deadline)
		if cond() {
			return true
		}
		if over {
			return false
		}
		<-tick.C
	}
}
