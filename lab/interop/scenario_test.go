package interop_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/testing/zktest"
)

// pathOf returns a path that is the test's own, even when it is run again. Commas
// would make it several.
func pathOf(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("/interop/%s-%d", strings.NewReplacer("/", ".", ",", "").Replace(t.Name()), serial.Add(1))
}

// serial makes names of actors, owners and paths unique.
var serial atomic.Int64

// lastingPathOf is pathOf for a path that exists, and is not reaped when no
// contender is there, as containers are.
func lastingPathOf(t testing.TB) string {
	t.Helper()
	path := pathOf(t)
	c := newClient(t)
	must.Get(c.Create(t.Context(), path, []byte{}, framework.WithParents()))(t)
	t.Cleanup(func() {
		if err := c.DeleteTree(context.WithoutCancel(t.Context()), path); err != nil {
			t.Error(err)
		}
	})
	return path
}

// contend locks for all contenders concurrently, rounds times each. The libraries have to follow each other, and
// leave nothing below the path.
func contend(t testing.TB, path string, rounds int, contenders ...contender) {
	t.Helper()
	o := &oracle{path: path}
	var wg sync.WaitGroup
	for _, c := range contenders {
		wg.Go(func() {
			for range rounds {
				if err := o.turn(c); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	o.check(t, rounds*len(contenders))
	awaitFree(t, newClient(t), path)
}

// ephemerals returns the ephemeral znodes at and below the path, by name, and whose
// they are.
func ephemerals(t testing.TB, c *framework.Client, path string) map[string]int64 {
	t.Helper()
	found := make(map[string]int64)
	must.OK(t, c.Sync(t.Context(), "/"))
	var walk func(path string)
	walk = func(path string) {
		names, st, err := c.Children(t.Context(), path)
		if err != nil {
			return // it has left
		}
		if st.EphemeralOwner != 0 {
			found[path] = st.EphemeralOwner
		}
		for _, name := range names {
			walk(zkpath.Join(path, name))
		}
	}
	walk(path)
	return found
}

// awaitQueued waits until the contender's session has a znode below the path.
func awaitQueued(t testing.TB, c *framework.Client, path string, waiting contender) {
	t.Helper()
	zktest.Eventually(t, generous, fmt.Sprintf("session %#x has a znode", waiting.sessionID()), func() bool { return nodesOf(t, c, path, waiting) > 0 })
}

// awaitGone waits until the contender's session has no znode below the path.
func awaitGone(t testing.TB, c *framework.Client, path string, gone contender) {
	t.Helper()
	zktest.Eventually(t, generous, "no ghost: who is refused has no znode", func() bool { return nodesOf(t, c, path, gone) == 0 })
}

func nodesOf(t testing.TB, c *framework.Client, path string, of contender) int {
	t.Helper()
	n := 0
	for _, session := range ephemerals(t, c, path) {
		if session == of.sessionID() {
			n++
		}
	}
	return n
}

// awaitFree waits until nothing of any contender is left below the path.
func awaitFree(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	zktest.Eventually(t, generous, "no contender has a znode", func() bool { return len(ephemerals(t, c, path)) == 0 })
}

// An outcome is what a lock on another goroutine came to.
type outcome struct {
	held bool
	err  error
	at   time.Time
}

// lockLater has c lock on a goroutine of its own, which ends with the test at the
// latest.
func lockLater(t testing.TB, c contender) <-chan outcome {
	t.Helper()
	done := make(chan outcome, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		held, err := c.lock(noLimit)
		done <- outcome{held, err, time.Now()}
	})
	t.Cleanup(wg.Wait)
	return done
}

// mustGet waits for the grant that lockLater is about.
func mustGet(t testing.TB, done <-chan outcome, what string) outcome {
	t.Helper()
	select {
	case got := <-done:
		if got.err != nil || !got.held {
			t.Fatalf("%s: %v, %v; want it held", what, got.held, got.err)
		}
		return got
	case <-time.After(generous):
		t.Fatalf("%s: not within %v", what, generous)
		panic("unreachable")
	}
}

// mustWait fails the test if the lock that lockLater is about has been granted,
// or is within the short time that a wrong grant takes.
func mustWait(t testing.TB, done <-chan outcome, what string) {
	t.Helper()
	select {
	case got := <-done:
		t.Fatalf("%s: came back (%v, %v), want it to wait", what, got.held, got.err)
	case <-time.After(wrongGrant):
	}
}

// wrongGrant is many times the time of a grant without contention.
const wrongGrant = 200 * time.Millisecond

// queueUp has the contenders lock, one behind the other.
func queueUp(t testing.TB, c *framework.Client, path string, contenders ...contender) []<-chan outcome {
	t.Helper()
	queue := make([]<-chan outcome, len(contenders))
	for i, waiting := range contenders {
		queue[i] = lockLater(t, waiting)
		awaitQueued(t, c, path, waiting)
	}
	return queue
}

// inOrder holds the lock by the first contender and queues the others up behind it. It fails the
// test unless each is granted at its predecessor's release.
func inOrder(t testing.TB, path string, contenders ...contender) {
	t.Helper()
	observer := newClient(t)
	mustLock(t, contenders[0])
	queue := queueUp(t, observer, path, contenders[1:]...)
	for i, granted := range queue {
		for j, waiting := range queue[i:] {
			if len(waiting) > 0 {
				t.Errorf("contender %d was granted while %d had the lock", i+j+1, i)
			}
		}
		mustUnlock(t, contenders[i])
		mustGet(t, granted, "the next one's lock")
	}
	mustUnlock(t, contenders[len(contenders)-1])
	awaitFree(t, observer, path)
}
