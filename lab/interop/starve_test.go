package interop_test

import (
	"context"
	"testing"
	"time"
)

// BenchmarkTwoThatWantAll has two clients acquire two permits of two at the same time, each for three
// seconds at most. It reports in how many rounds both were granted. Curator's acquire takes the
// permits one after another, so each client may have one of them and wait for the other. Each round
// has a new path.
func BenchmarkTwoThatWantAll(b *testing.B) {
	const limit = 3 * time.Second
	b.Run("Curator", func(b *testing.B) {
		clients := []*actor{newActor(b, curator), newActor(b, curator)}
		rounds(b, func(i int, path string) bool {
			if !clients[i].acquires(b, path, "2", 2, limit) {
				return false
			}
			clients[i].must(b, "release", path)
			return true
		})
	})
	b.Run("docent", func(b *testing.B) {
		c, other := newClient(b), newClient(b)
		rounds(b, func(i int, path string) bool {
			ctx, cancel := context.WithTimeout(b.Context(), limit)
			defer cancel()
			client := c
			if i == 1 {
				client = other
			}
			l, err := newSemaphore(b, client, path, 2).Acquire(ctx, 2)
			if err != nil {
				return false
			}
			mustRelease(b, l)
			return true
		})
	})
}

// rounds has both clients call acquire at the same time. It counts the rounds in which both, one or
// none of them was granted.
func rounds(b *testing.B, acquire func(client int, path string) bool) {
	b.Helper()
	var granted [3]int
	for b.Loop() {
		path, other := pathOf(b), make(chan bool, 1)
		go func() { // the round waits for it
			defer close(other) // also if the test has failed
			other <- acquire(1, path)
		}()
		n := 0
		for _, ok := range []bool{acquire(0, path), <-other} {
			if ok {
				n++
			}
		}
		granted[n]++
	}
	for n, name := range []string{"none", "one", "both"} {
		b.ReportMetric(float64(granted[n]), name)
	}
}
