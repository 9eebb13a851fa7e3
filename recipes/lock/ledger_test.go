package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// usesToGuard is how often a path is locked before its directory is watched.
const usesToGuard = 3

// TestALockIsNotListedWhereNobodyElseCame has a mutex released and locked
// again, with this and that done in between.
func TestALockIsNotListedWhereNobodyElseCame(t *testing.T) {
	const path = "/ledger/mutex"
	contend := func(t *testing.T, other *framework.Client) {
		if _, err := other.Create(t.Context(), path+"/lock-", nil, framework.Ephemeral(), framework.Sequential()); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		meanwhile func(t *testing.T, srv *zkserver.Server, other *framework.Client)
		lists     int
		taken     bool // by somebody else
	}{
		"nothing": {func(*testing.T, *zkserver.Server, *framework.Client) {}, 0, false},
		"somebody wrote elsewhere": {func(t *testing.T, _ *zkserver.Server, other *framework.Client) {
			mustWrite(t, other)
		}, 0, false},
		"a contender came": {func(t *testing.T, _ *zkserver.Server, other *framework.Client) { contend(t, other) }, 1, true},
		"a contender came and went": {func(t *testing.T, _ *zkserver.Server, other *framework.Client) {
			mustRelease(t, mustLock(t, newMutex(t, other, path)))
		}, 1, false},
		"another child came": {func(t *testing.T, _ *zkserver.Server, other *framework.Client) {
			if _, err := other.Create(t.Context(), path+"/note", nil); err != nil {
				t.Fatal(err)
			}
		}, 1, false},
		"the directory was written to": {func(t *testing.T, _ *zkserver.Server, other *framework.Client) {
			if _, err := other.Set(t.Context(), path, []byte("x"), framework.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}, 1, false},
		"the connection broke": {func(_ *testing.T, srv *zkserver.Server, _ *framework.Client) {
			srv.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.CutBefore})
		}, 1, false},
		"the directory was replaced, with as many contenders as before": {func(t *testing.T, _ *zkserver.Server, other *framework.Client) {
			ops := []framework.TxnOp{framework.OpDelete(path, framework.AnyVersion), framework.OpCreate(path, nil)}
			for range usesToGuard + 1 {
				ops = append(ops, framework.OpCreate(path+"/lock-", nil, framework.Ephemeral(), framework.Sequential()))
			}
			if _, err := other.Txn(t.Context(), ops...); err != nil {
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
				for range usesToGuard + 1 {
					mustRelease(t, mustLock(t, m))
				}
				lists := countListings(srv, path)
				tt.meanwhile(t, srv, other)
				lists.before = lists.handle.Hits()
				done := lockLater(t.Context(), m)
				time.Sleep(time.Second) //nolint:forbidigo // virtual: a connection that broke has been replaced
				if n := lists.count(); n < min(tt.lists, 1) || n > 2*tt.lists {
					t.Errorf("%d listings, want about %d", n, tt.lists)
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
					if err := other.Close(); err != nil { // with its nodes
						t.Fatal(err)
					}
					mustRelease(t, receive(t, done, "the grant").lease)
				}
			})
		})
	}
}

// A listings counts the listings of a directory.
type listings struct {
	handle *fault.Handle
	before int
}

func countListings(srv *zkserver.Server, path string) *listings {
	return &listings{handle: srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: path, Action: fault.Pass, Times: fault.Forever})}
}

func (l *listings) count() int { return l.handle.Hits() - l.before }

func mustWrite(t *testing.T, c *framework.Client) {
	t.Helper()
	if _, err := c.Create(t.Context(), "/ledger/write-", nil, framework.Sequential()); err != nil {
		t.Fatal(err)
	}
}

// TestALockIsListedWhereOthersContend: where a listing turned out to be needed it
// goes along with the creation from then on, so that it costs no round trip.
func TestALockIsListedWhereOthersContend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/ledger/busy"
		srv := virtualServer(t, zkserver.WithReapInterval(time.Hour))
		m, theirs := newMutex(t, virtualClient(t, srv), path), newMutex(t, virtualClient(t, srv), path)
		for range usesToGuard + 2 {
			mustRelease(t, mustLock(t, m))
		}
		mustRelease(t, mustLock(t, theirs))
		mustRelease(t, mustLock(t, m)) // loses a round trip
		synctest.Wait()
		held := srv.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.HoldReply})
		lists := countListings(srv, path)
		done := lockLater(t.Context(), m)
		synctest.Wait()
		if lists.count() != 1 {
			t.Error("the listing waits for the answer to the creation")
		}
		held.Release()
		mustRelease(t, receive(t, done, "the grant").lease)
	})
}

// TestThoseOfOneSessionQueueWithoutListings has many goroutines of one client come at once, and again and
// again. Each is granted in its turn.
func TestThoseOfOneSessionQueueWithoutListings(t *testing.T) {
	const path, workers, rounds = "/ledger/crowd", 30, 5
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t, zkserver.WithReapInterval(time.Hour))
		m := newMutex(t, virtualClient(t, srv), path)
		mustRelease(t, mustLock(t, m))
		synctest.Wait()
		lists := countListings(srv, path)
		var fences []int64 // in the order of the grants; guarded by the mutex under test
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for range rounds {
					lease := mustLock(t, m)
					fence, _ := lease.Fence(t.Context())
					fences = append(fences, fence)
					mustRelease(t, lease)
				}
			})
		}
		wg.Wait()
		for i := 1; i < len(fences); i++ {
			if fences[i] <= fences[i-1] {
				t.Fatalf("grant %d has fence %d, the one before %d", i, fences[i], fences[i-1])
			}
		}
		if n := lists.count(); len(fences) != workers*rounds || n > workers*rounds/3 {
			t.Errorf("%d grants took %d listings", len(fences), n)
		}
	})
}

// TestAListingThatOthersWaitForMayFail holds up what the first of several asks for, whose listing the others count
// on, or takes away who asks.
func TestAListingThatOthersWaitForMayFail(t *testing.T) {
	const path = "/ledger/base"
	for name, rule := range map[string]fault.Rule{
		"the watch on the directory is held up": {Op: fault.GetData, Path: path, Action: fault.HoldReply},
		"the creation is held up":               {Op: fault.Create, Path: path + "/*", Action: fault.HoldRequest},
		"the listing is held up":                {Op: fault.GetChildren, Path: path, Action: fault.HoldReply},
		"the connection breaks at the listing":  {Op: fault.GetChildren, Path: path, Action: fault.CutBefore},
		"the connection breaks at the creation": {Op: fault.Create, Path: path + "/*", Action: fault.CutBefore},
	} {
		for _, cancelled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ctx ends: %v", name, cancelled), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := virtualServer(t, zkserver.WithReapInterval(time.Hour))
					m := newMutex(t, virtualClient(t, srv), path)
					for range usesToGuard - 1 {
						mustRelease(t, mustLock(t, m))
					}
					synctest.Wait()
					held := srv.Rules().Add(rule)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					first := lockLater(ctx, m)
					synctest.Wait()
					second := lockLater(t.Context(), m)
					synctest.Wait()
					if cancelled {
						cancel()
						if got := receive(t, first, "the end of the first"); got.err != nil && !errors.Is(got.err, context.Canceled) {
							t.Errorf("the first: %v", got.err)
						} else if got.err == nil {
							mustRelease(t, got.lease)
						}
					}
					time.Sleep(time.Second) //nolint:forbidigo // virtual: whoever waits in vain has lost patience
					held.Release()
					if cancelled {
						mustReleaseEach(t, second)
					} else {
						mustReleaseEach(t, first, second)
					}
				})
			})
		}
	}
}

// TestATryIsNotRefusedForWhoHasGone: what a session has not seen go is looked for before a refusal.
func TestATryIsNotRefusedForWhoHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/ledger/try"
		srv := virtualServer(t, zkserver.WithReapInterval(time.Hour))
		m := newMutex(t, virtualClient(t, srv), path)
		for range usesToGuard + 1 {
			mustRelease(t, mustLock(t, m))
		}
		holder := mustLock(t, m)
		ctx, cancel := context.WithCancel(t.Context())
		waiter := lockLater(ctx, m)
		synctest.Wait()
		cancel() // its node goes in the background, which nobody takes note of
		receive(t, waiter, "the waiter's end")
		mustRelease(t, holder)
		synctest.Wait()
		lease, err := m.TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mustRelease(t, lease)
	})
}

// TestAReadersNodeMayComeAheadOfWritersThatWait has a writer of another session take the read lock before
// it gives the write lock back, as Curator's do: those of one session that queue behind it
// without a listing must wait for the reader.
func TestAReadersNodeMayComeAheadOfWritersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/ledger/heirs"
		srv := virtualServer(t, zkserver.WithReapInterval(time.Hour))
		ours, theirs := newReadWrite(t, virtualClient(t, srv), path), newReadWrite(t, virtualClient(t, srv), path)
		owner := lock.ContextWithOwner(t.Context(), lock.NewOwner("downgrader"))
		writer := mustLockAs(owner, t, theirs.Write())
		first := lockLater(t.Context(), ours.Write()) // lists, and watches
		synctest.Wait()
		second := lockLater(t.Context(), ours.Write())
		third := lockLater(t.Context(), ours.Write())
		synctest.Wait()
		reader := mustLockAs(owner, t, theirs.Read())
		mustRelease(t, writer)
		synctest.Wait()
		for _, waiting := range []<-chan result{first, second, third} {
			select {
			case got := <-waiting:
				t.Fatalf("granted beside a reader: %+v", got)
			default:
			}
		}
		mustRelease(t, reader)
		mustReleaseEach(t, first, second, third)
	})
}

// mustReleaseEach releases what comes of each, in whatever order that is.
func mustReleaseEach(t *testing.T, pending ...<-chan result) {
	t.Helper()
	var wg sync.WaitGroup
	for _, waiting := range pending {
		wg.Go(func() {
			got := <-waiting // the bubble tells if there is none
			if got.err != nil {
				t.Error(got.err)
				return
			}
			if err := got.lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
