package lock_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// What is passed on within a process needs no connection, where the lock is one that
// outlasts an outage.
func TestLocalHandoffDuringAnOutage(t *testing.T) {
	t.Parallel()
	relayed(t, 4, func(t relayTest) {
		held := mustLock(t, t.m)
		queued := t.lineUp(2, t.m)
		t.srv.Refuse()
		t.srv.Cut()
		<-time.After(time.Second)
		mustRelease(t, held)
		next := t.has(queued[0])
		mustRelease(t, next)
		last := t.has(queued[1])
		t.srv.Accept()
		if err := t.c.AwaitConnected(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := last.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		mustRelease(t, last)
	})
}
