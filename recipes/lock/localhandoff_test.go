package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// A relayTest is a client in virtual time whose owners pass a mutex on.
type relayTest struct {
	*testing.T
	srv *zkserver.Server
	c   *framework.Client
	max int
	m   *lock.Mutex
}

const relayPath = "/local"

func relayed(t *testing.T, max int, body func(t relayTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		body(relayTest{t, srv, c, max, newMutex(t, c, relayPath, lock.WithLocalHandoff(max))})
	})
}

// lineUp queues n owners of the process, one after another.
func (t relayTest) lineUp(n int, l lock.Locker) []<-chan result {
	t.Helper()
	var queued []<-chan result
	for range n {
		queued = append(queued, lockLater(t.Context(), l))
		synctest.Wait()
	}
	return queued
}

// elsewhere queues an owner of another process.
func (t relayTest) elsewhere() <-chan result {
	t.Helper()
	return t.lineUp(1, newMutex(t, virtualClient(t, t.srv), relayPath))[0]
}

// has returns the lease of a Lock that has to be granted by now.
func (t relayTest) has(done <-chan result, who ...any) *lock.Lease {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-done:
		if got.err != nil {
			t.Fatalf("%s: %v", fmt.Sprint(who...), got.err)
		}
		return got.lease
	default:
		t.Fatalf("%s was not granted", fmt.Sprint(who...))
		return nil
	}
}

// waits fails the test if somebody was granted by now.
func (t relayTest) waits(done <-chan result, who ...any) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-done:
		t.Fatalf("%s must wait, got %+v", fmt.Sprint(who...), got)
	default:
	}
}

func (t relayTest) nothingIsLeft() {
	t.Helper()
	synctest.Wait()
	if left := znodesBelow(t.srv, relayPath); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

func TestLocalHandoffAsksNothingAndKeepsTheOrder(t *testing.T) {
	t.Parallel()
	relayed(t, 10, func(t relayTest) {
		held := mustLock(t, t.m)
		node := held.Node()
		asked := t.srv.Rules().Add(fault.Rule{Action: fault.Pass, Times: fault.Forever, Path: relayPath + "/**"})
		queued := t.lineUp(5, t.m)
		if n := len(znodesBelow(t.srv, relayPath)); n != 1 {
			t.Errorf("%d znodes for one process, want 1", n)
		}
		for i, done := range queued {
			t.waits(done, "owner ", i)
			mustRelease(t, held)
			if err := held.Release(t.Context()); !errors.Is(err, lock.ErrReleased) {
				t.Errorf("a second release: %v, want ErrReleased", err)
			}
			held = t.has(done, "owner ", i)
			if held.Node() != node || held.Err() != nil {
				t.Errorf("owner %d has %s (%v), want %s", i, held.Node(), held.Err(), node)
			}
		}
		if n := asked.Hits(); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
		mustRelease(t, held)
		t.nothingIsLeft()
	})
}

// TestLocalHandoffIsBounded has somebody elsewhere wait while owners here keep coming.
func TestLocalHandoffIsBounded(t *testing.T) {
	t.Parallel()
	relayed(t, 3, func(t relayTest) {
		held := mustLock(t, t.m)
		elsewhere := t.elsewhere()
		queued := t.lineUp(2*t.max, t.m)
		for i, done := range queued[:t.max] {
			mustRelease(t, held)
			held = t.has(done, "owner ", i)
		}
		mustRelease(t, held)
		theirs := t.has(elsewhere, "the one elsewhere")
		t.waits(queued[t.max], "an owner here")
		mustRelease(t, theirs)
		held = t.has(queued[t.max], "the next owner here")
		for i, done := range queued[t.max+1:] {
			mustRelease(t, held)
			held = t.has(done, "owner ", t.max+1+i)
		}
		mustRelease(t, held)
		t.nothingIsLeft()
	})
}

// TestLocalHandoffKeepsFenceAndGuard: a number that somebody has is nobody else's.
func TestLocalHandoffKeepsFenceAndGuard(t *testing.T) {
	t.Parallel()
	uses := map[string]func(l *lock.Lease) error{
		"Fence": func(l *lock.Lease) error { _, err := l.Fence(context.Background()); return err },
		"Guard": func(l *lock.Lease) error { l.Guard(); return nil },
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			relayed(t, 100, func(t relayTest) { numbersAreNotShared(t, use) })
		})
	}
}

func numbersAreNotShared(t relayTest, use func(*lock.Lease) error) {
	held := mustLock(t, t.m)
	queued := t.lineUp(3, t.m)
	if err := use(held); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, held)
	next := t.has(queued[0], "the next")
	if next.Node() == held.Node() {
		t.Error("a znode was passed on whose number is in use")
	}
	guard := held.Guard() // as it was in use before
	before, err := held.Fence(t.Context())
	if err != nil {
		t.Error(err)
	}
	mustRelease(t, next)
	last := t.has(queued[1], "the one after")
	if last.Node() != next.Node() {
		t.Error("a znode was not passed on whose number is in nobody's use")
	}
	if n, err := next.Fence(t.Context()); !errors.Is(err, lock.ErrReleased) {
		t.Errorf("fence of a lease that was passed on: %d, %v; want ErrReleased", n, err)
	}
	if _, err := t.c.Txn(t.Context(), next.Guard()); !errors.Is(err, lock.ErrReleased) {
		t.Errorf("guard of a lease that was passed on: %v, want ErrReleased", err)
	}
	if _, err := t.c.Txn(t.Context(), guard); !errors.Is(err, framework.ErrNoNode) {
		t.Errorf("guard of the first: %v, want ErrNoNode", err)
	}
	if after, err := last.Fence(t.Context()); err != nil || after <= before {
		t.Errorf("fence %d (%v) after %d: must grow", after, err, before)
	}
	if _, err := t.c.Txn(t.Context(), last.Guard()); err != nil {
		t.Errorf("guard of the holder: %v", err)
	}
	mustRelease(t, last)
	mustRelease(t, t.has(queued[2], "the last"))
	t.nothingIsLeft()
}

func TestLocalHandoffOfALostLock(t *testing.T) {
	t.Parallel()
	harms := map[string]func(t relayTest, held *lock.Lease){
		"its session expires": func(t relayTest, _ *lock.Lease) {
			if err := t.srv.Expire(t.c.Session().ID); err != nil {
				t.Fatal(err)
			}
		},
		"an operator deletes its znode": func(t relayTest, held *lock.Lease) {
			await(time.Second) // by then it is watched
			if err := virtualClient(t, t.srv).Delete(t.Context(), held.Node()); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, harm := range harms {
		t.Run(name, func(t *testing.T) {
			relayed(t, 100, func(t relayTest) {
				held := mustLock(t, t.m)
				queued := t.lineUp(3, t.m)
				mustRelease(t, held)
				held = t.has(queued[0], "the first")
				harm(t, held)
				receive(t, held.Lost(), "the loss")
				next := receive(t, queued[1], "the next").lease
				if next.Node() == held.Node() || next.Err() != nil {
					t.Errorf("the next has %s (%v), lost was %s", next.Node(), next.Err(), held.Node())
				}
				if err := held.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
					t.Errorf("release of what was lost: %v", err)
				}
				mustRelease(t, next)
				mustRelease(t, t.has(queued[2], "the last"))
				t.nothingIsLeft()
			})
		})
	}
}

// TestLocalHandoffToOneThatGivesUp has a waiter's context end together with the
// release before it.
func TestLocalHandoffToOneThatGivesUp(t *testing.T) {
	t.Parallel()
	relayed(t, 100, func(t relayTest) {
		for range 50 {
			held := mustLock(t, t.m)
			ctx, cancel := context.WithCancel(t.Context())
			gone := lockLater(ctx, t.m)
			synctest.Wait()
			last := t.lineUp(1, t.m)[0]
			go cancel()
			mustRelease(t, held)
			if got := <-gone; got.err == nil {
				mustRelease(t, got.lease)
			} else if !errors.Is(got.err, context.Canceled) {
				t.Error(got.err)
			}
			mustRelease(t, t.has(last, "who did not give up"))
			mustRelease(t, mustLock(t, tryLock{t.m}))
		}
		t.nothingIsLeft()
	})
}

func TestLocalHandoffOfARevokedLock(t *testing.T) {
	t.Parallel()
	relayed(t, 100, func(t relayTest) {
		asked := make(chan *lock.Lease, 4)
		m := newMutex(t, t.c, relayPath, lock.WithLocalHandoff(t.max), lock.WithRevocation(func(l *lock.Lease) { asked <- l }))
		held := mustLock(t, m)
		elsewhere := t.elsewhere()
		queued := t.lineUp(2, m)
		mustRelease(t, held)
		held = t.has(queued[0], "the first")
		if err := lock.Revoke(t.Context(), virtualClient(t, t.srv), held.Node()); err != nil {
			t.Fatal(err)
		}
		if l := receive(t, asked, "the request"); l != held {
			t.Error("another than the holder was asked")
		}
		mustRelease(t, held)
		mustRelease(t, t.has(elsewhere, "the one elsewhere"))
		mustRelease(t, t.has(queued[1], "the last"))
		if len(asked) != 0 {
			t.Error("a later holder was asked, too")
		}
	})
}

func TestLocalHandoffBesideOtherFeatures(t *testing.T) {
	t.Parallel()
	relayed(t, 100, func(t relayTest) {
		held := mustLock(t, t.m)
		again := mustLock(t, t.m)
		queued := t.lineUp(2, t.m)
		if got := <-lockLater(t.Context(), tryLock{t.m}); !errors.Is(got.err, lock.ErrHeld) {
			t.Errorf("a try beside a holder here: %v, want ErrHeld", got.err)
		}
		mustRelease(t, held)
		t.waits(queued[0], "who waits for one that still has a lease")
		found, err := t.m.Participants(t.Context())
		if err != nil || len(found) != 1 || !found[0].Holder {
			t.Errorf("participants %+v (%v), want the holder alone", found, err)
		}
		mustRelease(t, again)
		first := t.has(queued[0], "the first")
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_ = lock.Do(t.Context(), t.m, func(context.Context) error { panic("by the test") })
		}()
		synctest.Wait()
		mustRelease(t, first)
		mustRelease(t, t.has(queued[1], "the second"))
		if v := <-panicked; v != "by the test" {
			t.Errorf("recovered %v", v)
		}
		mustRelease(t, mustLock(t, t.m))
		t.nothingIsLeft()
	})
}

func TestLocalHandoffWhenTheClientIsClosed(t *testing.T) {
	t.Parallel()
	relayed(t, 3, func(t relayTest) {
		held := mustLock(t, t.m)
		queued := t.lineUp(3, t.m)
		if err := t.c.Close(); err != nil {
			t.Fatal(err)
		}
		receive(t, held.Lost(), "the loss")
		for _, done := range queued {
			if got := receive(t, done, "the end of a wait"); !errors.Is(got.err, framework.ErrClosed) {
				t.Errorf("a waiter of a closed client: %+v", got)
			}
		}
	})
}

// TestLocalHandoffKeepsThePlaceOfAParty has two goroutines of one owner wait, of which the
// one that drives the attempt gives up: before its turn, and at the moment of the hand-off.
func TestLocalHandoffKeepsThePlaceOfAParty(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"before its turn": false, "at the hand-off": true} {
		t.Run(name, func(t *testing.T) {
			relayed(t, 10, func(t relayTest) {
				held := mustLock(t, t.m)
				party := lock.ContextWithOwner(t.Context(), lock.NewOwner("party"))
				impatient, cancel := context.WithCancel(party)
				first := lockLater(impatient, t.m)
				synctest.Wait()
				second := lockLater(party, t.m)
				synctest.Wait()
				behind := t.lineUp(1, t.m)[0]
				if late {
					done := make(chan error, 1)
					go func() { done <- held.Release(t.Context()) }()
					cancel()
					if err := receive(t, done, "the release"); err != nil {
						t.Fatal(err)
					}
				} else {
					cancel()
					synctest.Wait()
					mustRelease(t, held)
				}
				synctest.Wait()
				t.waits(behind, "the owner behind the party")
				theirs := t.has(second, "the party's other goroutine")
				if got := receive(t, first, "the end of the first"); got.err == nil {
					mustRelease(t, got.lease)
				}
				mustRelease(t, theirs)
				mustRelease(t, t.has(behind, "the owner behind the party"))
				t.nothingIsLeft()
			})
		})
	}
}
