package lock_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/testing/zkserver"
)

// TestSemaphoreMutexTurnIsDeleted deletes the queue znode of the waiter that has the turn. Nothing
// happens to the leases, so only the watch on that znode notifies the waiter. Without it, the next
// contender would take the turn, too, and the two would wait for each other's leases.
func TestSemaphoreMutexTurnIsDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := anyPath("/semaphore-turn")
		srv := virtualServer(t)
		operator, holder, c := virtualClient(t, srv), virtualClient(t, srv), virtualClient(t, srv)
		held := mustLock(t, newSemaphoreMutex(t, holder, path))
		waiter := lockLater(t.Context(), newSemaphoreMutex(t, c, path))
		await(time.Second) // all watches are set, long before a recheck
		before := ephemeralsOf(t, srv, c.Session().ID)
		if len(before) != 2 {
			t.Fatalf("the waiter has %q, want its turn and its lease", before)
		}
		for _, node := range before {
			if strings.HasPrefix(node, path+"/locks/") {
				deleteNode(t, operator, node)
			}
		}
		await(time.Second)
		after := ephemeralsOf(t, srv, c.Session().ID)
		if len(after) != 2 || after[0] == before[0] || after[1] == before[1] {
			t.Errorf("the waiter has %q after %q, want it to have queued again", after, before)
		}
		mustRelease(t, held)
		mustRelease(t, granted(t, waiter, "the waiter"))
		await(time.Second)
		if left := ephemeralsOf(t, srv, c.Session().ID); len(left) != 0 {
			t.Errorf("%q are left", left)
		}
	})
}

// ephemeralsOf returns the paths of a session's znodes in ascending order.
func ephemeralsOf(t *testing.T, srv *zkserver.Server, session int64) []string {
	t.Helper()
	for _, s := range srv.Sessions() {
		if s.ID == session {
			return slices.Sorted(slices.Values(s.Ephemerals))
		}
	}
	t.Fatalf("session %#x is over", session)
	return nil
}
