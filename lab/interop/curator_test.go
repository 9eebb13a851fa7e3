package interop_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
)

func TestCuratorExclusion(t *testing.T) {
	t.Parallel()
	each(t, inTurn, func(t *testing.T, k kind, path string) {
		shared := newClient(t)
		contend(t, path, 30,
			k.nativeOf(t, shared, path), k.nativeOf(t, shared, path), k.native(t, path),
			k.foreigner(t, curator, path), k.foreigner(t, curator, path), k.foreigner(t, curator, path))
	})
}

func TestCuratorReadWriteExclusion(t *testing.T) {
	t.Parallel()
	path := pathOf(t)
	var contenders []contender
	for range 2 {
		for _, k := range []kind{writers, readers, readers} {
			contenders = append(contenders, k.native(t, path), k.foreigner(t, curator, path))
		}
	}
	contend(t, path, 20, contenders...)
}

// Both ways, whoever holds keeps the other out: one that tries, one that
// waits for a while. Neither leaves a znode behind.
func TestCuratorRefusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ holds, tries kind }{
		{mutexes, mutexes},
		{semaphores, semaphores},
		{writers, writers},
		{writers, readers},
		{readers, writers},
	} {
		sub(t, fmt.Sprintf("%s keeps %s out", c.holds.name, c.tries.name), func(t *testing.T, path string) {
			refusal(t, path, c.holds.native(t, path), c.tries.foreigner(t, curator, path))
			refusal(t, path, c.holds.foreigner(t, curator, path), c.tries.native(t, path))
		})
	}
}

func refusal(t testing.TB, path string, holder, other contender) {
	t.Helper()
	observer := newClient(t)
	mustLock(t, holder)
	for _, limit := range []time.Duration{0, 100 * time.Millisecond} {
		mustBeRefused(t, other, limit)
	}
	awaitGone(t, observer, path, other) // docent's deletion may go on in the background
	mustUnlock(t, holder)
	mustLock(t, other)
	mustUnlock(t, other)
	awaitFree(t, observer, path)
}

// A path has one kind of lock. docent refuses to be the second kind on a path of Curator's.
func TestCuratorOtherKindIsRefused(t *testing.T) {
	t.Parallel()
	kinds := []kind{mutexes, writers, readers, semaphores}
	for _, theirs := range kinds {
		for _, ours := range kinds {
			if theirs.name == ours.name || theirs.name != mutexes.name && theirs.name != semaphores.name && ours.name != mutexes.name && ours.name != semaphores.name {
				continue // the same kind, or the two sides of one
			}
			sub(t, fmt.Sprintf("%s beside Curator's %s", ours.name, theirs.name), func(t *testing.T, path string) {
				holder, second := theirs.foreigner(t, curator, path), ours.native(t, path)
				mustLock(t, holder)
				for _, limit := range []time.Duration{0, generous} {
					if held, err := second.lock(limit); held || !errors.Is(err, lock.ErrMixed) {
						t.Errorf("lock within %v: %v, %v; want ErrMixed", limit, held, err)
					}
					awaitGone(t, second.client, path, second)
				}
				mustUnlock(t, holder)
				mustLock(t, second)
				mustUnlock(t, second)
			})
		}
	}
}

func TestCuratorReadersShare(t *testing.T) {
	t.Parallel()
	path := pathOf(t)
	ours, theirs := readers.native(t, path), readers.foreigner(t, curator, path)
	mustLock(t, ours)
	mustLock(t, theirs)
	mustUnlock(t, ours)
	mustLock(t, ours)
	writer := lockLater(t, writers.native(t, path))
	mustWait(t, writer, "a writer beside two readers")
	mustUnlock(t, ours)
	mustWait(t, writer, "a writer beside Curator's reader")
	mustUnlock(t, theirs)
	mustGet(t, writer, "the writer")
}

func TestCuratorOrder(t *testing.T) {
	t.Parallel()
	each(t, inTurn, func(t *testing.T, k kind, path string) {
		inOrder(t, path,
			k.native(t, path), k.foreigner(t, curator, path), k.foreigner(t, curator, path),
			k.native(t, path), k.native(t, path), k.foreigner(t, curator, path), k.native(t, path))
	})
	sub(t, "SemaphoreMutex, which tries without a place in the queue", func(t *testing.T, path string) {
		first, second, third := semaphores.native(t, path), semaphores.native(t, path), semaphores.native(t, path)
		for _, c := range []contender{first, second, third} { // the next lock of each begins with the lease
			mustLock(t, c)
			mustUnlock(t, c)
		}
		inOrder(t, path, first, semaphores.foreigner(t, curator, path), second,
			semaphores.foreigner(t, curator, path), third)
	})
	sub(t, "Readers behind a writer", func(t *testing.T, path string) {
		for _, c := range []struct{ holder, writer, reader contender }{
			{readers.native(t, path), writers.foreigner(t, curator, path), readers.native(t, path)},
			{readers.foreigner(t, curator, path), writers.native(t, path), readers.foreigner(t, curator, path)},
		} {
			inOrder(t, path, c.holder, c.writer, c.reader)
		}
	})
}

// A client that is closed gives its locks to those who wait, at once.
func TestCuratorSuccessionAtClose(t *testing.T) {
	t.Parallel()
	each(t, exclusives, func(t *testing.T, k kind, path string) {
		observer := newClient(t)
		ours, theirs, ours2 := k.native(t, path), k.foreigner(t, curator, path), k.native(t, path)
		mustLock(t, ours)
		queue := queueUp(t, observer, path, theirs, ours2)

		closed := time.Now()
		must.OK(t, ours.client.Close())
		if took := mustGet(t, queue[0], "Curator's lock").at.Sub(closed); took > sessionTimeout/2 {
			t.Errorf("Curator was granted %v after docent's client was closed", took)
		}
		closed = time.Now()
		theirs.must(t, "close")
		if took := mustGet(t, queue[1], "docent's lock").at.Sub(closed); took > sessionTimeout/2 {
			t.Errorf("docent was granted %v after Curator's client was closed", took)
		}
		mustUnlock(t, ours2)
	})
}

// A waiter that withdraws in the middle of the queue grants no lock, and delays no contender.
func TestCuratorWaiterWithdraws(t *testing.T) {
	t.Parallel()
	each(t, inTurn, func(t *testing.T, k kind, path string) {
		ours := func() contender { return k.native(t, path) }
		theirs := func() contender { return k.foreigner(t, curator, path) }
		withdrawing(t, path, ours(), theirs(), ours())
		withdrawing(t, path, ours(), theirs(), theirs())
		withdrawing(t, path, theirs(), ours(), theirs())
		withdrawing(t, path, theirs(), ours(), ours())
	})
}

func withdrawing(t testing.TB, path string, holder, middle, last contender) {
	t.Helper()
	observer := newClient(t)
	mustLock(t, holder)
	queue := queueUp(t, observer, path, middle, last)
	must.OK(t, middle.withdraw())
	if got := <-queue[0]; got.held {
		t.Fatal("who gave up got the lock of somebody else")
	}
	awaitGone(t, observer, path, middle)
	granted := queue[1]
	mustWait(t, granted, "the last one, whose predecessor gave up")
	mustUnlock(t, holder)
	mustGet(t, granted, "the last one")
	mustUnlock(t, last)
	awaitFree(t, observer, path)
}
