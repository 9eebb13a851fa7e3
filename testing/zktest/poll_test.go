package zktest_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/testing/zktest"
)

func TestPolling(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	within := func(d time.Duration) func() bool {
		start := time.Now()
		return func() bool { return time.Since(start) >= d }
	}
	for _, c := range []struct {
		name    string
		poll    func(testing.TB, time.Duration, string, func() bool)
		after   time.Duration // when the condition becomes true
		failure string
		takes   time.Duration
	}{
		{"eventually, at once", zktest.Eventually, 0, "", 0},
		{"eventually, in time", zktest.Eventually, limit / 2, "", limit / 2},
		{"eventually, too late", zktest.Eventually, time.Hour, "not within 1.005s: it is so", limit + 5*time.Millisecond},
		{"never, and so it is", zktest.Never, time.Hour, "", limit + 5*time.Millisecond},
		{"never, but it is", zktest.Never, limit / 2, "after 500ms: it is so", limit / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				failure := failureOf(t, func(t testing.TB) { c.poll(t, limit, "it is so", within(c.after)) })
				if failure != c.failure {
					t.Errorf("failure %q; want %q", failure, c.failure)
				}
				if took := time.Since(start); took != c.takes {
					t.Errorf("took %v; want %v", took, c.takes)
				}
			})
		})
	}
}

func TestSlowConditionIsTriedOnceMoreAfterTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		zktest.Eventually(t, time.Second, "the second try counts", func() bool {
			tries++
			<-time.After(time.Minute)
			return tries == 2
		})
	})
}

// failureOf returns what a test would have failed with, "" if it would not have.
func failureOf(t testing.TB, test func(testing.TB)) string {
	t.Helper()
	double := &failing{TB: t}
	var done sync.WaitGroup
	done.Go(func() { test(double) })
	done.Wait()
	return double.failure
}

// A failing test is one that only notes its failure.
type failing struct {
	testing.TB
	failure string
	log     string
}

func (f *failing) Helper() {}

func (f *failing) Failed() bool { return f.failure != "" }

func (f *failing) Logf(format string, args ...any) { f.log += fmt.Sprintf(format, args...) }

func (f *failing) Fatalf(format string, args ...any) {
	f.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
