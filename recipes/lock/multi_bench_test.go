package lock_test

import (
	"testing"

	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

// BenchmarkMultiOfTen measures Lock and Release of ten free mutexes together, compared with one
// mutex and with ten that are locked one after another.
func BenchmarkMultiOfTen(b *testing.B) {
	c := newClient(b, zktest.Shared(b).Addr())
	paths := numbered("/bench/multi", 10)
	keepDirectories(b, c, paths)
	mutexes := newMutexes(b, c, paths...)
	cycle := func(b *testing.B, locks ...lock.Locker) {
		for b.Loop() {
			leases := make([]*lock.Lease, len(locks))
			for i, l := range locks {
				leases[i] = mustLock(b, l)
			}
			for _, lease := range leases {
				mustRelease(b, lease)
			}
		}
	}
	b.Run("multi", func(b *testing.B) { cycle(b, newMulti(b, mutexes...)) })
	b.Run("one mutex", func(b *testing.B) { cycle(b, mutexes[0]) })
	b.Run("ten mutexes", func(b *testing.B) { cycle(b, mutexes...) })
}
