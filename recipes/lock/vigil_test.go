package lock_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
)

// TestAPassedLockIsWatchedAsIfItHadBeenKept: what counts is how long the znode has been
// held, by however many. A new znode begins anew.
func TestAPassedLockIsWatchedAsIfItHadBeenKept(t *testing.T) {
	t.Parallel()
	for _, passes := range []int{0, 1, 4, 5} { // in steps of 10 ms; the fifth pass is at 50 ms
		t.Run(fmt.Sprintf("after %d passes", passes), func(t *testing.T) {
			relayed(t, 10, func(t relayTest) {
				held := mustLock(t, t.m)
				looks := t.srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: held.Node(), Action: fault.Pass, Times: fault.Forever})
				granted := time.Now()
				for i, next := range t.lineUp(passes, t.m) {
					await(10 * time.Millisecond)
					mustRelease(t, held)
					held = t.has(next, "owner ", i)
				}
				if passes < 5 {
					await(time.Until(granted.Add(49 * time.Millisecond)))
					if n := looks.Hits(); n != 0 {
						t.Errorf("%d looks before it had been held for 50 ms, want none", n)
					}
				}
				await(time.Until(granted.Add(51 * time.Millisecond)))
				if looks.Hits() == 0 { // two where it is passed on in the midst of a look
					t.Error("nobody looked when it had been held for 50 ms")
				}
				if err := virtualClient(t, t.srv).Delete(t.Context(), held.Node()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if err := held.Err(); !errors.Is(err, lock.ErrNodeDeleted) {
					t.Errorf("after an operator's delete Err = %v, want ErrNodeDeleted", err)
				}
				again := mustLock(t, t.m)
				await(49 * time.Millisecond)
				mustRelease(t, again)
				t.nothingIsLeft()
			})
		})
	}
}

// TestLostIsClosedForWhoAsksLate, and for who asked before.
func TestLostIsClosedForWhoAsksLate(t *testing.T) {
	t.Parallel()
	relayed(t, 1, func(t relayTest) {
		held := mustLock(t, t.m)
		other := mustLock(t, newMutex(t, t.c, relayPath+"-too"))
		early := other.Lost()
		if closed(early) {
			t.Error("closed before the loss")
		}
		t.c.Close()
		for name, lost := range map[string]<-chan struct{}{"early": early, "asked again": other.Lost(), "late": held.Lost()} {
			if !closed(lost) {
				t.Errorf("not closed: %s", name)
			}
		}
	})
}
