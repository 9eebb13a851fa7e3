package lock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestAFreeLockIsNotListedWhereNothingHappened has a mutex released and locked
// again, with this and that done to the ensemble in between.
func TestAFreeLockIsNotListedWhereNothingHappened(t *testing.T) {
	const path = "/trail/mutex"
	contend := func(t *testing.T, other *framework.Client) {
		if _, err := other.Create(t.Context(), path+"/lock-", nil, framework.Ephemeral(), framework.Sequential()); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		meanwhile func(t *testing.T, other *framework.Client)
		lists     int
		taken     bool // by somebody else
	}{
		"nothing":               {func(*testing.T, *framework.Client) {}, 0, false},
		"a contender came":      {contend, 1, true},
		"somebody wrote at all": {func(t *testing.T, other *framework.Client) { mustWrite(t, other) }, 1, false},
		"the directory was replaced, with a contender in it, at once": {func(t *testing.T, other *framework.Client) {
			_, err := other.Txn(t.Context(), framework.OpDelete(path, framework.AnyVersion), framework.OpCreate(path, nil),
				framework.OpCreate(path+"/lock-", nil, framework.Ephemeral(), framework.Sequential()))
			if err != nil {
				t.Fatal(err)
			}
		}, 1, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := virtualServer(t)
				other := virtualClient(t, srv)
				m := newMutex(t, virtualClient(t, srv), path)
				for range 3 {
					mustRelease(t, mustLock(t, m))
				}
				synctest.Wait() // the listing behind the first creation, which failed for want of parents, may be late
				lists := srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: path, Action: fault.Pass, Times: fault.Forever})
				tt.meanwhile(t, other)
				done := lockLater(t.Context(), m)
				synctest.Wait()
				if n := lists.Hits(); n != tt.lists {
					t.Errorf("%d listings, want %d", n, tt.lists)
				}
				select {
				case got := <-done:
					if tt.taken {
						t.Fatalf("granted beside a holder: %+v", got)
					}
					mustRelease(t, got.lease)
				default:
					if !tt.taken {
						t.Error("not granted")
					}
					if _, err := newMutex(t, other, path).TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
						t.Errorf("a try: %v, want ErrHeld", err)
					}
					if err := other.Close(); err != nil { // with its node
						t.Fatal(err)
					}
					mustRelease(t, receive(t, done, "the grant").lease)
				}
			})
		})
	}
}

func mustWrite(t *testing.T, c *framework.Client) {
	t.Helper()
	if _, err := c.Create(t.Context(), "/trail/write-", nil, framework.Sequential()); err != nil {
		t.Fatal(err)
	}
}

// TestAFreeLockIsListedWhereOthersWrite: where the listing turned out to be needed it
// goes along with the creation from then on, so that it costs no round trip.
func TestAFreeLockIsListedWhereOthersWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/trail/busy"
		srv := virtualServer(t, zkserver.WithReapInterval(time.Hour))
		other := virtualClient(t, srv)
		if _, err := other.Create(t.Context(), "/trail", nil); err != nil {
			t.Fatal(err)
		}
		m := newMutex(t, virtualClient(t, srv), path)
		for range 5 {
			mustRelease(t, mustLock(t, m))
			mustWrite(t, other)
		}
		synctest.Wait()
		held := srv.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.HoldReply})
		lists := srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: path, Action: fault.Pass})
		done := lockLater(t.Context(), m)
		synctest.Wait()
		if lists.Hits() != 1 {
			t.Error("the listing waits for the answer to the creation")
		}
		held.Release()
		mustRelease(t, receive(t, done, "the grant").lease)
	})
}
