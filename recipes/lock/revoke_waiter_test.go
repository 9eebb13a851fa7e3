package lock_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRevocationOfAWaiter requests the release from a waiter. Its function is called once, with
// the lease, when the waiter has the lock.
func TestRevocationOfAWaiter(t *testing.T) {
	t.Parallel()
	for _, k := range kindsThat(withParticipants) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const path = "/revoke-waiter"
				srv := virtualServer(t)
				other := virtualClient(t, srv)
				option, calls := revocable()
				l := k.lock(t, virtualClient(t, srv), path, option)
				holder := k.rivalOf(t, other, path)
				held := mustLock(t, holder)
				done := lockLater(t.Context(), l)
				synctest.Wait()
				found := participantsOf(t, l)
				mustRevoke(t, other, found[len(found)-1].Path)
				await(time.Second)
				if len(calls) > 0 {
					t.Error("called while it waits")
				}
				mustRelease(t, held)
				lease := granted(t, done, "the lock")
				await(time.Second)
				if len(calls) != 1 {
					t.Fatalf("%d calls, want 1", len(calls))
				}
				if got := <-calls; got != lease {
					t.Errorf("called with %v, want the lease %v", got, lease)
				}
				mustRelease(t, lease)
			})
		})
	}
}
