package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// countListings counts the listings of the directory from now on.
func countListings(srv *zkserver.Server, path string) (count func() int) {
	handle := srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: path, Action: fault.Pass, Times: fault.Forever})
	return handle.Hits
}

// TestLockListsAlongWithItsCreation: the listing does not wait for the answer to the creation.
func TestLockListsAlongWithItsCreation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/listings/along"
		srv := virtualServer(t)
		m := newMutex(t, virtualClient(t, srv), path)
		mustRelease(t, mustLock(t, m))
		synctest.Wait() // the creation that found no directory had a listing of its own
		held := srv.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.HoldReply})
		lists := countListings(srv, path)
		done := lockLater(t.Context(), m)
		synctest.Wait()
		if lists() != 1 {
			t.Errorf("%d listings before the answer to the creation, want 1", lists())
		}
		held.Release()
		mustRelease(t, must.Receive(t, done, "the grant").lease)
	})
}

// TestReadersUseListingsAlongWithOthersCreations has four readers list along with their creations,
// and one that comes then. Another one lists along while the latter's creation is on its way, and
// its listing shows both znodes.
func TestReadersUseListingsAlongWithOthersCreations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path, trip = "/listings/readers", 160 * time.Millisecond
		srv := virtualServer(t)
		read := newReadWrite(t, virtualClient(t, srv), path).Read()
		mustRelease(t, mustLock(t, read))
		synctest.Wait() // the creation that found no directory had a listing of its own
		slow := fault.Rule{Path: path + "/*", Action: fault.DelayReply, Delay: trip, Times: fault.Forever}
		srv.Rules().Add(slow)
		slow.Op, slow.Path = fault.GetChildren, path
		lists := srv.Rules().Add(slow)
		var readers []<-chan result
		for _, pause := range []time.Duration{trip / 8, trip / 8, trip / 8, trip / 8, trip * 9 / 16, 0} {
			readers = append(readers, lockLater(t.Context(), read))
			<-time.After(pause)
		}
		mustReleaseEach(t, readers...)
		if n := lists.Hits(); n != 5 {
			t.Errorf("%d listings, want one along with each creation but the fifth", n)
		}
	})
}

// TestAReaderDoesNotWaitForOthersCalls has an ACL provider hold up the creations of four readers,
// which would list along.
func TestAReaderDoesNotWaitForOthersCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heldUp atomic.Int32 // how many of the next calls are held up
		goOn := make(chan struct{})
		provider := func(string) []acl.Entry {
			if heldUp.Add(-1) >= 0 {
				<-goOn
			}
			return nil
		}
		c := virtualClient(t, virtualServer(t), framework.WithACLProvider(provider))
		read := newReadWrite(t, c, "/listings/provider").Read()
		mustRelease(t, mustLock(t, read))
		heldUp.Store(alongAtOnce)
		var readers []<-chan result
		for range alongAtOnce {
			readers = append(readers, lockLater(t.Context(), read))
		}
		synctest.Wait()
		mustRelease(t, mustLock(t, read))
		if heldUp.Load() >= 0 {
			t.Error("no creation was held up")
		}
		close(goOn)
		mustReleaseEach(t, readers...)
	})
}

// TestManyWaitersShareListings has a thousand come at once to a lock that is held.
func TestManyWaitersShareListings(t *testing.T) {
	const path, waiters, most = "/listings/thousand", 1000, 20
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		held := mustLock(t, newMutex(t, virtualClient(t, srv), path))
		m := newMutex(t, virtualClient(t, srv), path)
		lists := countListings(srv, path)
		together := srv.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.HoldReply})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				if _, err := m.Lock(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("%v, want the end of ctx", err)
				}
			})
		}
		synctest.Wait() // all have sent their creates: how the goroutines were scheduled counts no longer
		together.Release()
		synctest.Wait()
		if n := len(znodesBelow(srv, path)); n != waiters+1 {
			t.Errorf("%d znodes, want the holder's and %d", n, waiters)
		}
		if n := lists(); n > most {
			t.Errorf("%d waiters took %d listings, want at most %d", waiters, n, most)
		}
		cancel()
		wg.Wait()
		mustRelease(t, held)
	})
}

// TestSharedListingUnderFaults starts several attempts at once, so that some share a listing. One
// of the requests has a fault, and some of the attempts may withdraw meanwhile.
func TestSharedListingUnderFaults(t *testing.T) {
	t.Parallel()
	const path, attempts = "/listings/faults", 12
	for name, rule := range map[string]fault.Rule{
		"the creations are held up":                  {Op: fault.Create, Path: path + "/*", Action: fault.HoldReply},
		"the first listing is held up":               {Op: fault.GetChildren, Path: path, Action: fault.HoldReply},
		"a shared listing is held up":                {Op: fault.GetChildren, Path: path, Action: fault.HoldReply},
		"the connection breaks at the first listing": {Op: fault.GetChildren, Path: path, Action: fault.CutBefore},
		"the connection breaks at a shared listing":  {Op: fault.GetChildren, Path: path, Action: fault.CutBefore},
		"the reply to a shared listing is lost":      {Op: fault.GetChildren, Path: path, Action: fault.DropReply},
		"the connection breaks at a creation":        {Op: fault.Create, Path: path + "/*", Skip: 6, Action: fault.CutBefore},
	} {
		for _, givenUp := range []int{0, 1, 7, attempts - 1} {
			t.Run(fmt.Sprintf("%s, %d give up", name, givenUp), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := virtualServer(t, zkserver.WithReapInterval(time.Hour))
					m := newMutex(t, virtualClient(t, srv), path)
					mustRelease(t, mustLock(t, m))
					if strings.Contains(name, "a shared listing") {
						listAlongSlowly(srv, path)
					}
					held := srv.Rules().Add(rule)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var wanted []<-chan result
					for i := range attempts {
						if i < givenUp {
							go func() {
								if lease, err := m.Lock(ctx); err == nil {
									_ = lease.Release(t.Context())
								}
							}()
						} else {
							wanted = append(wanted, lockLater(t.Context(), m))
						}
						if i == alongAtOnce-1 {
							synctest.Wait()
						}
					}
					<-time.After(2 * alongDelay)
					synctest.Wait()
					if held.Hits() == 0 {
						t.Error("no request was met")
					}
					cancel()
					synctest.Wait()
					held.Release()
					mustReleaseEach(t, wanted...)
					<-time.After(time.Minute) // virtual: background deletions have been repeated
					if left := znodesBelow(srv, path); len(left) != 0 {
						t.Errorf("left: %v", left)
					}
				})
			})
		}
	}
}

// alongAtOnce is how many attempts of a session list along with their creations at one time.
const alongAtOnce = 4

const alongDelay = 10 * time.Millisecond

// listAlongSlowly delays the listings along with the first creations. If other attempts come
// meanwhile, these listings don't show their znodes, so they share a later one.
func listAlongSlowly(srv *zkserver.Server, path string) {
	srv.Rules().Add(fault.Rule{
		Op: fault.GetChildren, Path: path, Action: fault.DelayReply, Delay: alongDelay, Times: alongAtOnce,
	})
}

// TestSharedListingInALostSession ends the session while its attempts share a listing.
func TestSharedListingInALostSession(t *testing.T) {
	t.Parallel()
	const path, attempts = "/listings/lost", 12
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t, zkserver.WithReapInterval(time.Hour))
		c := virtualClient(t, srv)
		m := newMutex(t, c, path)
		holder := mustLock(t, newMutex(t, virtualClient(t, srv), path))
		listAlongSlowly(srv, path)
		held := srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: path, Action: fault.HoldReply})
		var wanted []<-chan result
		for i := range attempts {
			wanted = append(wanted, lockLater(t.Context(), m))
			if i == alongAtOnce-1 {
				synctest.Wait()
			}
		}
		<-time.After(2 * alongDelay)
		synctest.Wait()
		if held.Hits() == 0 {
			t.Error("no listing was held up")
		}
		must.OK(t, srv.Expire(c.Session().ID))
		held.Release()
		synctest.Wait()
		mustRelease(t, holder)
		mustReleaseEach(t, wanted...)
	})
}

// TestListingThatMayNotBeMade: all that wait for the shared listing get its error.
func TestListingThatMayNotBeMade(t *testing.T) {
	t.Parallel()
	const path, attempts = "/listings/closed", 12
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		operator := virtualClient(t, srv, framework.WithAuth("digest", []byte("operator:secret")))
		must.Get(operator.Create(t.Context(), path, nil, framework.WithParents(), framework.WithACL(
			digest("operator", "secret", acl.All),
			acl.Entry{Perms: acl.Create | acl.Delete, Scheme: "world", ID: "anyone"})))(t)
		m := newMutex(t, virtualClient(t, srv), path)
		for range attempts {
			done := lockLater(t.Context(), m)
			defer func() {
				if got := must.Receive(t, done, "the error"); !errors.Is(got.err, framework.ErrNoAuth) {
					t.Errorf("%v, want ErrNoAuth", got.err)
				}
			}()
		}
	})
}

// TestTryIsNotRefusedForAnOrphanThatHasGone: a withdrawn attempt blocks no client once its znode
// is deleted.
func TestTryIsNotRefusedForAnOrphanThatHasGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/listings/try"
		srv := virtualServer(t, zkserver.WithReapInterval(time.Hour))
		m := newMutex(t, virtualClient(t, srv), path)
		holder := mustLock(t, m)
		ctx, cancel := context.WithCancel(t.Context())
		waiter := lockLater(ctx, m)
		synctest.Wait()
		cancel()
		must.Receive(t, waiter, "the waiter's end")
		mustRelease(t, holder)
		synctest.Wait()
		mustRelease(t, mustTry(t, m))
	})
}

// TestADowngradeComesAheadOfWritersThatWait has a writer of another session take the read lock
// before it gives the write lock back, as Curator's do: writers of one session that queue behind
// it must wait for the reader.
func TestADowngradeComesAheadOfWritersThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/listings/heirs"
		srv := virtualServer(t, zkserver.WithReapInterval(time.Hour))
		ours, theirs := newReadWrite(t, virtualClient(t, srv), path), newReadWrite(t, virtualClient(t, srv), path)
		owner := lock.ContextWithOwner(t.Context(), lock.NewOwner("downgrader"))
		writer := mustLockAs(owner, t, theirs.Write())
		first := lockLater(t.Context(), ours.Write())
		synctest.Wait()
		second := lockLater(t.Context(), ours.Write())
		third := lockLater(t.Context(), ours.Write())
		synctest.Wait()
		reader := mustLockAs(owner, t, theirs.Read())
		mustRelease(t, writer)
		synctest.Wait()
		mustWait(t, "writers behind a reader", first, second, third)
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
